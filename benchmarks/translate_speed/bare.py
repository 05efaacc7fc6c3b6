"""What a user writes who translates with CTranslate2 and SentencePiece alone: RUN BEAM ALPHA, a sentence on stdin."""

import sys

import ctranslate2
import sentencepiece

run, beam, alpha = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
subwords = sentencepiece.SentencePieceProcessor(model_file=f"{run}/subwords.model")
translator = ctranslate2.Translator(f"{run}/ct2/int8", compute_type="int8")
pieces = [subwords.encode(line.rstrip("\n"), out_type=str) for line in sys.stdin]
results = translator.translate_batch(pieces, beam_size=beam, length_penalty=0.8 * alpha)
for result in results:
    print(subwords.decode(result.hypotheses[0]))
