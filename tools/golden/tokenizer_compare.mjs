// Makes a golden folder for package tokenizer out of a tokenizer.json, with Hugging Face's own code as the second opinion.
//
//   npm install tokenizers            (the native library; or @huggingface/tokenizers, its JavaScript relative)
//   node tokenizer_compare.mjs OUT tokenizer.json [--random N] [--seed S] [TEXTFILE…]
//   ANTIPHASE_GOLDEN=OUT go test ./tokenizer -run TestGolden
//
// Run it in the folder where the npm package is installed. OUT gets tokenizer.json and golden.json: each text file cut into
// pieces of a few kilobytes, and N random strings that mix scripts, marks, white space and the file's added tokens.
import { createRequire } from 'node:module';
import fs from 'node:fs';
import path from 'node:path';

const require = createRequire(path.join(process.cwd(), 'package.json'));

/** Returns {encode(text, template) → ids, decode(ids, skip) → text} from whichever package is installed. */
async function open(file) {
  const json = fs.readFileSync(file, 'utf8');
  let native;
  try { native = require('tokenizers'); } catch { /* the JavaScript package then */ }
  if (native) {
    const t = native.Tokenizer.fromString(json);
    return {
      name: 'tokenizers',
      encode: async (s, template) => (await t.encode(s, null, { addSpecialTokens: template })).getIds(),
      decode: async (ids, skip) => t.decode(ids, skip),
    };
  }
  const { Tokenizer } = require('@huggingface/tokenizers');
  const t = new Tokenizer(JSON.parse(json), {});
  return {
    name: '@huggingface/tokenizers',
    encode: async (s, template) => t.encode(s, { add_special_tokens: template }).ids,
    decode: async (ids, skip) => t.decode(ids, { skip_special_tokens: skip, clean_up_tokenization_spaces: false }),
  };
}

/** mulberry32: a small seeded generator, so that a difference can be made again. */
function generator(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const blocks = [
  [0x20, 0x7e], [0x20, 0x7e], [0x41, 0x5a], [0x61, 0x7a], [0x30, 0x39], [0xa0, 0x17f], [0x300, 0x36f], [0x370, 0x3ff],
  [0x400, 0x4ff], [0x590, 0x6ff], [0x900, 0x97f], [0xe00, 0xe7f], [0x1100, 0x11ff], [0x1e00, 0x1eff], [0x2000, 0x206f],
  [0x2070, 0x209f], [0x2150, 0x218b], [0x2460, 0x24ff], [0x2580, 0x2590], [0x3000, 0x30ff], [0x4e00, 0x9fff],
  [0xac00, 0xd7a3], [0xfb00, 0xfb4f], [0xfe00, 0xfe0f], [0xff00, 0xffef], [0x1d400, 0x1d7ff], [0x1f300, 0x1faff], [0, 0x1f],
  [0x80, 0xd7ff], [0xe000, 0x10ffff],
];
const bits = [' ', '  ', '   ', '\n', '\n\n', '\r\n', '\t', ' \n ', '\u00a0', '\u3000', "'s", "'LL", "'Re", "'\u017f", "'", '▁',
  '<0x41>', '123', '1234567', 'the ', ' and', 'ing', 'Hello', '...', '://', '\u200d', '\ufffd', '\u0130', 'e\u0301', '🏽'];

function randomText(rnd, added) {
  const pick = (a) => a[Math.floor(rnd() * a.length)];
  let s = '';
  for (let n = 1 + Math.floor(rnd() * 24); n > 0; n--) {
    const k = rnd();
    if (k < 0.3) s += pick(bits);
    else if (k < 0.4 && added.length) s += pick(added);
    else {
      const [lo, hi] = pick(blocks);
      for (let m = 1 + Math.floor(rnd() * 6); m > 0; m--) s += String.fromCodePoint(lo + Math.floor(rnd() * (hi - lo + 1)));
    }
  }
  return s;
}

/** Cuts a text into pieces of about 3,000 characters at whatever place comes, but never inside a character. */
function* pieces(text) {
  const chars = Array.from(text);
  for (let i = 0, k = 0; i < chars.length; k++) {
    const n = 2000 + (k * 7919) % 2000;
    yield chars.slice(i, i + n).join('');
    i += n;
  }
}

async function main(args) {
  const opt = { random: 1000, seed: 1 };
  const plain = [];
  for (let i = 0; i < args.length; i++) {
    if (args[i].startsWith('--')) opt[args[i].slice(2)] = Number(args[++i]);
    else plain.push(args[i]);
  }
  const [out, file, ...texts] = plain;
  if (!file) throw new Error('usage: tokenizer_compare.mjs OUT tokenizer.json [--random N] [--seed S] [TEXTFILE…]');
  const hf = await open(file);
  const added = JSON.parse(fs.readFileSync(file, 'utf8')).added_tokens.map((t) => t.content);
  const rnd = generator(opt.seed);
  const cases = [];
  const add = async (text) => {
    const ids = await hf.encode(text, true);
    cases.push({
      text, ids, ids_nospecial: await hf.encode(text, false),
      decoded: await hf.decode(ids, true), decoded_keep: await hf.decode(ids, false),
    });
  };
  for (const t of texts) for (const p of pieces(fs.readFileSync(t, 'utf8'))) await add(p);
  for (let i = 0; i < opt.random; i++) await add(randomText(rnd, added));
  fs.mkdirSync(out, { recursive: true });
  fs.copyFileSync(file, path.join(out, 'tokenizer.json'));
  fs.writeFileSync(path.join(out, 'golden.json'), JSON.stringify(cases));
  console.log(`${hf.name}: ${cases.length} cases in ${out}`);
}

await main(process.argv.slice(2));
