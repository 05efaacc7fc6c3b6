"""LibreTranslate's interface: what its clients call, with its names, answers and status codes."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.datastructures import UploadFile
from starlette.responses import FileResponse, JSONResponse, Response

from dragoman.serve.access import admitted, body_schema, check_access, check_size
from dragoman.serve.fields import checked, read_fields
from dragoman.serve.files import FORMATS, Files
from dragoman.serve.languages import name_of
from dragoman.serve.refusals import Refusal, refusals
from dragoman.serve.service import Service

_JSON, _FORM, _MULTIPART = "application/json", "application/x-www-form-urlencoded", "multipart/form-data"
_MOST_ALTERNATIVES = 100  # that may be asked for; there are never more than the beam is wide
Text = Annotated[str, Field(min_length=1)]


class TranslateFields(BaseModel):
    """What to translate. In a form, or after the question mark of the address, `q` is one text."""

    q: Text | Annotated[list[str], Field(min_length=1)] = Field(description="a text, or a list of texts")
    source: Text = Field(description='language code, or "auto"')
    target: Text = Field(description="language code")
    format: Literal["text", "html"] = "text"
    alternatives: int = Field(0, ge=0, le=_MOST_ALTERNATIVES, description="other translations wished for")
    api_key: str = ""


class DetectFields(BaseModel):
    """The text whose language is asked for."""

    q: Text
    api_key: str = ""


class FileFields(BaseModel):
    """The file to translate, and the languages."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    file: Annotated[Any, Field(json_schema_extra={"type": "string", "format": "binary"})]
    source: Text
    target: Text
    api_key: str = ""


class Detection(BaseModel):
    """A language, and how sure it is in percent."""

    confidence: float
    language: str


class TranslateAnswer(BaseModel):
    """The translation, or a list of them if a list was sent; `alternatives` likewise, if they were asked for."""

    translatedText: str | list[str]
    detectedLanguage: Detection | list[Detection] | None = None
    alternatives: list[str] | list[list[str]] | None = None


class Language(BaseModel):
    """A language, and those into which it can be translated."""

    code: str
    name: str
    targets: list[str]


class LanguageName(BaseModel):
    """A language."""

    code: str
    name: str


class DefaultLanguages(BaseModel):
    """Those that a page offers first."""

    source: LanguageName
    target: LanguageName


class Settings(BaseModel):
    """What a page needs to know of the server."""

    charLimit: int
    frontendTimeout: int
    apiKeys: bool
    keyRequired: bool
    suggestions: bool
    filesTranslation: bool
    supportedFilesFormat: list[str]
    language: DefaultLanguages


class FileAnswer(BaseModel):
    """Where the translated file is, for a while."""

    translatedFileUrl: str


class Health(BaseModel):
    """That the server answers."""

    status: str


def make_router(service: Service, files: Files) -> APIRouter:
    """LibreTranslate's addresses."""
    router = APIRouter(tags=["LibreTranslate"])

    @router.post(
        "/translate",
        summary="Translate a text or a list of texts",
        response_model=TranslateAnswer,
        responses=refusals(400, 403, 408, 413, 429, 500, 503, 504),
        openapi_extra=body_schema(service, TranslateFields, _JSON, _FORM, _MULTIPART),
    )
    async def translate(request: Request) -> Response:
        fields = await admitted(request, service, TranslateFields)
        texts = fields.q if isinstance(fields.q, list) else [fields.q]
        check_size(service, texts)
        detections = service.detected(texts) if fields.source == "auto" else [(fields.source, 100.0)] * len(texts)
        nbest = 1 + fields.alternatives
        found = await _translated(service, texts, [src for src, _ in detections], fields.target, fields.format, nbest)
        request.scope["state"]["notes"]["chars"] = sum(map(len, texts))
        is_list = isinstance(fields.q, list)
        answer: dict[str, Any] = {"translatedText": _one_or_all([versions[0] for versions in found], is_list)}
        if fields.source == "auto":
            told = [{"confidence": round(sure, 1), "language": code} for code, sure in detections]
            answer["detectedLanguage"] = _one_or_all(told, is_list)
        if fields.alternatives:
            answer["alternatives"] = _one_or_all([versions[1:] for versions in found], is_list)
        return JSONResponse(answer)

    @router.get("/languages", summary="The languages there are", responses=refusals(500))
    async def languages() -> list[Language]:
        return [
            Language(
                code=code, name=name_of(code), targets=[tgt for src, tgt in service.models if src == code] + [code]
            )
            for code in service.languages
        ]

    @router.post(
        "/detect",
        summary="Which language a text is in",
        response_model=list[Detection],
        responses=refusals(400, 403, 408, 413, 429, 500),
        openapi_extra=body_schema(service, DetectFields, _JSON, _FORM, _MULTIPART),
    )
    async def detect(request: Request) -> Response:
        fields = await admitted(request, service, DetectFields)
        check_size(service, [fields.q])
        ranked = service.detector.ranked(fields.q)
        return JSONResponse([{"confidence": round(sure, 1), "language": code} for code, sure in ranked])

    @router.post(
        "/translate_file",
        summary="Translate a file",
        response_model=FileAnswer,
        responses=refusals(400, 403, 408, 413, 429, 500, 503, 504),
        openapi_extra=body_schema(service, FileFields, _MULTIPART),
    )
    async def translate_file(request: Request) -> Response:
        given = await read_fields(request, max_part_bytes=service.limits.max_body_bytes)
        check_access(request, service, given)
        fields = checked(FileFields, given)
        if not isinstance(fields.file, UploadFile) or not fields.file.filename:
            raise Refusal(400, "Invalid request: missing file parameter")
        name = await files.translated(fields.file.filename, await fields.file.read(), fields.source, fields.target)
        return JSONResponse({"translatedFileUrl": str(request.base_url) + "download_file/" + quote(name)})

    @router.get(
        "/download_file/{name}",
        summary="Fetch a translated file",
        response_class=FileResponse,
        responses={200: {"content": {"application/octet-stream": {}}, "description": "the file"}, **refusals(404, 500)},
    )
    async def download_file(name: str) -> Response:
        path, shown = files.find(name)
        return FileResponse(path, filename=shown, media_type="application/octet-stream")

    @router.get("/frontend/settings", summary="What a page needs to know of the server", responses=refusals(500))
    async def settings() -> Settings:
        src, tgt = next(iter(service.models))
        return Settings(
            charLimit=service.limits.max_chars,
            frontendTimeout=500,
            apiKeys=service.keys is not None,
            keyRequired=service.keys is not None,
            suggestions=False,
            filesTranslation=True,
            supportedFilesFormat=list(FORMATS),
            language=DefaultLanguages(
                source=LanguageName(code=src, name=name_of(src)), target=LanguageName(code=tgt, name=name_of(tgt))
            ),
        )

    @router.get("/health", summary="Whether the server answers", responses=refusals(500))
    async def health() -> Health:
        return Health(status="ok")

    return router


def _one_or_all(values: list[Any], is_list: bool) -> Any:
    return values if is_list else values[0]


async def _translated(
    service: Service, texts: list[str], sources: list[str], tgt: str, style: str, nbest: int
) -> list[list[str]]:
    """Each text by the model from its own language; one that is in the target language already stays as it is."""
    results = [[text] for text in texts]
    for src in dict.fromkeys(sources):
        if src == tgt and src in service.languages:
            continue
        model = service.model_for(src, tgt)
        rows = [row for row, one in enumerate(sources) if one == src]
        found = await service.texts(model, [texts[row] for row in rows], style, nbest)
        for row, versions in zip(rows, found, strict=True):
            results[row] = versions
    return results
