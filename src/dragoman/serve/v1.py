"""Our own interface: all that `Translator.translate` can do, a sentence at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse, Response

from dragoman._version import __version__
from dragoman.errors import DragomanError
from dragoman.search.step import Sampling
from dragoman.serve.access import admitted, body_schema, check_size
from dragoman.serve.batcher import Search
from dragoman.serve.refusals import Refusal, refusals
from dragoman.serve.service import Model, Service
from dragoman.text.glossary import Glossary, Term
from dragoman.translator import Translation

_MOST_ALONE = 64  # sentences of a request that is not shared with others
Text = Annotated[str, Field(min_length=1, max_length=10_000)]
Word = Annotated[str, Field(min_length=1, max_length=100)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class SamplingFields(_Strict):
    """How to draw translations at random."""

    temperature: float = Field(1.0, gt=0, le=10)
    top_k: int = Field(0, ge=0, le=1_000_000)
    top_p: float = Field(1.0, gt=0, le=1)
    seed: int = Field(0, ge=0, le=2**62)


class V1TranslateFields(_Strict):
    """Sentences and how to translate them; as `dragoman.Translator.translate` takes them."""

    q: Text | Annotated[list[Text], Field(min_length=1, max_length=1000)]
    source: Word = Field(description='language code, or "auto"')
    target: Word
    beam: int | None = Field(None, ge=1, le=16)
    length_penalty: float | None = Field(None, ge=-10, le=10)
    nbest: int = Field(1, ge=1, le=16)
    no_repeat_ngram: int = Field(0, ge=0, le=100)
    prefix: str = Field("", max_length=1000, description="words with which each translation has to begin")
    token_scores: bool = False
    alignments: bool = Field(False, description="word alignments; need torch on the server")
    sampling: SamplingFields | None = Field(None, description="draw instead of searching; needs torch on the server")
    glossary: dict[Word, Annotated[list[Word], Field(min_length=1, max_length=8)]] = Field(
        default_factory=dict, max_length=16, description="terms to insist on, and the forms that count"
    )
    unk_copy: bool = Field(False, description="keep placeholders, addresses, numbers and tags as they are")
    api_key: str = ""


class V1AttentionFields(_Strict):
    """The sentence to look into."""

    q: Text
    source: Word
    target: Word
    translation: str | None = Field(None, max_length=10_000, description="looks at how this would be produced")
    off_heads: list[Word] = Field(default_factory=list, max_length=1000, description='such as "cross.2.3"')
    api_key: str = ""


class V1Translation(BaseModel):
    """A translation; numbers are natural logarithms."""

    text: str
    score: float
    log_prob: float
    tokens: list[str]
    is_cut: bool
    token_log_probs: list[float] | None = None
    alignment: list[list[int]] | None = Field(None, description="pairs of source word and target word")
    terms: list[list[str | bool | None]] | None = Field(
        None, description="source term, form that is met, whether it was met without insisting"
    )
    alternatives: list[V1Translation] | None = None


class V1TranslateAnswer(BaseModel):
    """A translation of each sentence, in order."""

    model: str
    translations: list[V1Translation]


class V1Model(BaseModel):
    """A model of the server."""

    name: str
    source: str
    target: str
    engine: str
    n_subwords: int
    beam: int
    length_penalty: float
    max_len_tokens: int


class V1Models(BaseModel):
    """All models, and the version of the software."""

    version: str
    models: list[V1Model]


def make_router(service: Service) -> APIRouter:
    """Our addresses."""
    router = APIRouter(prefix="/v1", tags=["Dragoman"])

    def chosen(src: str, tgt: str, texts: list[str]) -> Model:
        if src == "auto":
            src = service.detected(["\n".join(texts)])[0][0]
        return service.model_for(src, tgt)

    @router.post(
        "/translate",
        summary="Translate sentences, with all that the search knows of them",
        response_model=V1TranslateAnswer,
        responses=refusals(400, 403, 408, 413, 429, 500, 503, 504),
        openapi_extra=body_schema(service, V1TranslateFields, "application/json"),
    )
    async def translate(request: Request) -> Response:
        fields = await admitted(request, service, V1TranslateFields)
        texts = fields.q if isinstance(fields.q, list) else [fields.q]
        check_size(service, texts)
        model = chosen(fields.source, fields.target, texts)
        request.scope["state"]["notes"]["chars"] = sum(map(len, texts))
        with _own_errors_refused():
            found = await _translations(service, model, texts, fields)
        return JSONResponse({"model": model.name, "translations": [_told(one, fields) for one in found]})

    @router.get("/models", summary="The models there are", responses=refusals(500))
    async def models() -> V1Models:
        return V1Models(version=__version__, models=[_described(model) for model in service.models.values()])

    @router.post(
        "/attention",
        summary="The attention of every layer and head for a sentence",
        response_model=dict[str, Any],
        responses=refusals(400, 403, 408, 413, 429, 500, 503, 504),
        openapi_extra=body_schema(service, V1AttentionFields, "application/json"),
    )
    async def attention(request: Request) -> Response:
        fields = await admitted(request, service, V1AttentionFields)
        check_size(service, [fields.q])
        model = chosen(fields.source, fields.target, [fields.q])
        with _own_errors_refused():
            told = await service.alone(lambda: model.translator.explain(fields.q, fields.translation, fields.off_heads))
        return Response(told, media_type="application/json")

    return router


@contextmanager
def _own_errors_refused() -> Iterator[None]:
    """Errors that a user can cause become refusals."""
    try:
        yield
    except DragomanError as error:
        raise Refusal(400, error.message + (f" ({error.hint})" if error.hint else "")) from None


async def _translations(
    service: Service, model: Model, texts: list[str], fields: V1TranslateFields
) -> list[Translation]:
    """Together with other requests' sentences if possible, or else one by one."""
    search = Search(
        beam=fields.beam,
        length_penalty=fields.length_penalty,
        nbest=fields.nbest,
        no_repeat_ngram=fields.no_repeat_ngram,
        token_log_probs=fields.token_scores,
    )
    if not (fields.prefix or fields.alignments or fields.sampling or fields.glossary or fields.unk_copy):
        return await service.sentences(model, texts, search)
    if len(texts) > _MOST_ALONE:
        raise Refusal(400, f"Invalid request: at most {_MOST_ALONE} texts can be translated with these options")
    if fields.sampling and (fields.glossary or fields.unk_copy):
        raise Refusal(400, "Invalid request: glossary and unk_copy search; sampling does not")
    glossary = Glossary(Term(src, tuple(forms)) for src, forms in fields.glossary.items()) if fields.glossary else None
    options: dict[str, Any] = asdict(search) | {
        "prefix": fields.prefix, "glossary": glossary, "unk_copy": fields.unk_copy, "alignments": fields.alignments,
    }  # fmt: skip
    sampling = Sampling(**fields.sampling.model_dump()) if fields.sampling else None

    async def one(row: int) -> Translation:
        # Each sentence draws from a stream of its own, whoever is translated beside it.
        drawn = sampling and replace(sampling, first_sentence=row)
        return (await model.translator.translate([texts[row]], sampling=drawn, **options))[0]

    return [await service.alone(lambda row=row: one(row)) for row in range(len(texts))]  # type: ignore[misc]


def _told(found: Translation, fields: V1TranslateFields) -> dict[str, Any]:
    """A translation as JSON, with what was asked for."""
    told: dict[str, Any] = {
        "text": found.text,
        "score": found.score,
        "log_prob": found.log_prob,
        "tokens": found.tokens,
        "is_cut": found.is_cut,
    }
    if fields.token_scores:
        told["token_log_probs"] = found.token_log_probs
    if fields.alignments:
        told["alignment"] = found.alignment
    if fields.glossary or fields.unk_copy:
        told["terms"] = found.terms
    if fields.nbest > 1:
        told["alternatives"] = [_told(other, fields.model_copy(update={"nbest": 1})) for other in found.alternatives]
    return told


def _described(model: Model) -> V1Model:
    config = model.translator.config
    return V1Model(
        name=model.name,
        source=model.src,
        target=model.tgt,
        engine=model.translator.engine,
        n_subwords=model.translator.n_subwords,
        beam=config.search.beam,
        length_penalty=config.search.length_penalty,
        max_len_tokens=config.batches.max_len_tokens,
    )
