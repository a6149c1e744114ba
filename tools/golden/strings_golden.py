"""Writes tokenizer/chat/testdata/strings.json: Python's answers to the string methods, slices and tests of chat
templates, on texts of one to four bytes per character, and jinja2's (3.1) to its filters that map case.

    python3 tools/golden/strings_golden.py > tokenizer/chat/testdata/strings.json
"""
import json

import jinja2

TEXTS = ["", "abcabc", "Très été, très léger", "日本語 テキスト 日本語", "😀a😀b😀", "né\nœuvre\r\nñ\n\nü", "\u3000 ö x ö\u00a0\t",
         "it's ÉLAN vital", "ÀÉ", "àé", "٣٤", "  a  b  c  ", " né ü ", "é\x1cè\u2028ü\x0b\x85ö\r"]
PARTS = ["", "a", "é", "語", "日本", "😀", " "]
BOUNDS = [0, 1, 2, 3, 7, 100, -1, -2, -3, -100]

WITH_PART = ["s.find(a)", "s.rfind(a)", "s.index(a)", "s.count(a)", "s.split(a)", "s.rsplit(a)", "s.split(a, 1)", "s.rsplit(a, 1)",
             "s.split(a, 2)", "s.rsplit(a, 2)", "s.split(a, maxsplit=1)", "s.rsplit(a, maxsplit=1)", "s.split(a, 0)", "s.split(sep=a)", "s.rsplit(sep=a, maxsplit=1)",
             "s.startswith(a)", "s.endswith(a)", "s.startswith((a, 'T'))", "s.endswith((a, 'r'))", "s.removeprefix(a)", "s.removesuffix(a)",
             "s.strip(a)", "s.lstrip(a)", "s.rstrip(a)", "s.replace(a, '‹')", "s.replace(a, '‹', 1)", "a.join(['ä', s, '語'])", "a in s",
             "a not in s", "s + a", "a < s"]
ALONE = ["s.strip()", "s.lstrip()", "s.rstrip()", "s.upper()", "s.lower()", "s.capitalize()", "s.title()", "s.split()", "s.rsplit()",
         "s.split(None, 1)", "s.rsplit(None, 1)", "s.split(maxsplit=1)", "s.rsplit(maxsplit=2)", "s.splitlines()", "s.splitlines(True)", "s.splitlines(keepends=True)",  "s.isdigit()", "s.isalpha()", "s.isspace()",
         "s.isupper()", "s.islower()", "s[::-1]", "s[:]", "s * 2",
         "s.strip('a', 'b')", "s.find()", "s.find(1)", "s.split(foo=1)", "s.upper(1)", "s.startswith(1)", "s.replace('a')"]

# Characters whose mappings have several characters, or depend on their neighbours, or that have a title case of their own.
CASED = ["straße", "STRASSE ẞ", "ﬁn ﬃ", "ŉa", "ǆabǅ ǇxX", "İstanbul ıI", "ὈΔΥΣΣΕΎΣ ΣΑΣ", "ΑΣ. ΑΣ'Σ Σ", "Σ", "ΐ ᾳ ᾼ ᾲ", "ა Ა", "ⅳ Ⓐⓑ", "ªbc Ⅷ",
         "they're o'neil-smith (ab[cd{ef<gh 1st ²x", "և ҐЖё", "𐐀𐐨 𞤀𞤢", "ﬀ日ß", "a\u0301Σ\u0301b aΣ\u0301", "ꭰ Ꭰ", "K Å ſ"]
CASING = ["s.upper()", "s.lower()", "s.capitalize()", "s.title()", "s.casefold()", "s.swapcase()", "s.isupper()", "s.islower()",
          "s|upper", "s|lower", "s|capitalize", "s|title"]


def answer(expression, **names):
    try:
        if "|" in expression:
            return repr([jinja2.Environment().compile_expression(expression)(**names)])
        return repr([eval(expression, {}, names)])
    except (IndexError, TypeError, ValueError):  # not there, an index outside, an empty separator, arguments it does not take
        return None


def cases():
    for s in CASED + TEXTS:
        for e in CASING:
            yield e, s, "", 0, answer(e, s=s)
    for s in TEXTS:
        for e in ALONE:
            yield e, s, "", 0, answer(e, s=s)
        for e in WITH_PART:
            for a in PARTS:
                yield e, s, a, 0, answer(e, s=s, a=a)
        for e in ["s.%s(a, n)", "s.%s(a, 1, n)", "s.%s(a, n, -1)"]:
            for name in ["find", "rfind", "index", "count", "startswith", "endswith"]:
                for n in [0, 1, 4, 100, -1, -4] if s in TEXTS[:5] else []:
                    for a in ["", "é", "語"]:
                        yield e % name, s, a, n, answer(e % name, s=s, a=a, n=n)
        for e in ["s[n]", "s[n:]", "s[:n]", "s[1:n]", "s[n:-1]", "s[::n]", "s[n::-1]"]:
            for n in BOUNDS:
                yield e, s, "", n, answer(e, s=s, n=n)


print("[")
rows = [json.dumps(list(c), ensure_ascii=False) for c in cases()]
print(",\n".join(rows))
print("]")
