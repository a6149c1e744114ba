// Texts to begin with. span is what the last token should find.

export const examples = [
  {
    id: 'needle',
    name: 'Needle',
    span: 'Naples 42',
    text: 'There are magic codes hidden in the text below. Remember them.\nRosa was in the harbor. The magic code is Naples 42. Leo was in the garden. The cup lay in the harbor. The magic code is Austin 73.\nWhich magic code begins with Naples? The magic code is Naples',
  },
  {
    id: 'name',
    name: 'Copied name',
    span: 'Tamsin',
    text: 'Tamsin gave the lamp to Ivo. Ivo put the lamp into the box. Later the box was open and the lamp was gone. Everybody asked Tamsin. The lamp had come from',
  },
  {
    id: 'brackets',
    name: 'Brackets',
    span: '{ y',
    text: 'f ( x [ a ( b ) c ] { y ( z ) [ w ] ( v',
  },
];

// findSpan gives the range of tokens that hold a text, where it occurs first.
export function findSpan(tokens, text) {
  const all = tokens.map(t => t.text).join(''),
    at = text ? all.indexOf(text) : -1;
  if (at < 0) return null;
  let from = -1,
    to = 0;
  for (let i = 0, pos = 0; i < tokens.length; i++) {
    const end = pos + tokens[i].text.length;
    if (end > at && from < 0) from = i;
    if (pos < at + text.length) to = i + 1;
    pos = end;
  }
  return [from, to];
}
