/**
 * Every message that the studio and the command can show, collected from the source into `test-results/messages.txt` to be
 * read as a whole; none of them, and no page of the docs, has a word that the glossary has put away.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync, Visitor } from 'vite';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '..');

/** Words and phrases that were replaced, each with the words used now. */
const OLD_WORDS: readonly [old: RegExp, now: string][] = [
  [/\bforet(ell|old)/i, 'predicted'],
  [/\bmerge these well\b/i, 'recommended settings'],
  [/\bsearch for the best\b/i, 'auto-tune λ'],
  [/\bas the method says\b/i, 'method default'],
  [/\btake (it|this|them) into the recipe\b/i, 'apply'],
  [/\bmerges(, not written| in memory \(not saved\))/i, 'merges, made in memory to be measured'],
  [/\bmade from it\b/i, 'fine-tuned model'],
  [/\bmodel to thin\b/i, 'model to prune'],
  [/\bwhole texts?\b/i, 'full text'],
  [/\bthis hub\b/i, 'current hub'],
  [/\b(dtype of each tensor|as each tensor of the base)\b/i, 'same dtype as base'],
  [/\bcompare all \d* ?methods\b/i, 'benchmark'],
  [/\bpart of the norm\b/i, 'relative change'],
  [/\btext (they|the models?) writes? (themselves|itself)\b/i, 'self-generated text'],
  [/\bis not a text\b/i, 'is not a string'],
  [/\bmade to do harm\b/i, 'malicious'],
  [/\banew\b/i, 'again'],
  [/\blog in to\b/i, 'sign in to'],
  [/\bsearched for on\b|λ (is|was) searched\b/i, 'tuned'],
  [/\blicence/i, 'license'],
  [/\bcolour/i, 'color'],
  [
    /\b(normal|optim|serial|quant|random|token|initial|organ)is(e|ation|ing)|\blearnt\b|\btowards\b/i,
    'the US spelling',
  ],
];

interface Message {
  file: string;
  line: number;
  text: string;
}

function filesBelow(folder: string, wanted: RegExp): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .map((path) => `${folder}/${path.replaceAll('\\', '/')}`)
    .filter((path) => wanted.test(path))
    .sort();
}

/** Whether a literal is words for people: several of them, or one with a capital; not a path, a key or a selector. */
function isMessage(text: string): boolean {
  return /^[\p{L}“(0-9…≈][^{}<>=\\]*\s[^{}<>=\\]*\p{L}/u.test(text) || /^\p{Lu}\p{Ll}+[.…]?$/u.test(text);
}

function messagesOf(file: string): Message[] {
  const code = readFileSync(join(root, file), 'utf8');
  const found: Message[] = [];
  const add = (start: number, text: string) =>
    found.push({ file, line: code.slice(0, start).split('\n').length, text });
  /** Literals that are types, or attributes that nobody reads. */
  const keys = new Set<unknown>();
  new Visitor({
    TSLiteralType: ({ literal }) => keys.add(literal),
    JSXAttribute({ name, value }) {
      if (/^(className|d|viewBox|points|transform|role|id)$/.test(String(name.name))) keys.add(value);
    },
    Literal(node) {
      if (typeof node.value === 'string' && !keys.has(node) && isMessage(node.value))
        add(node.start, node.value);
    },
    // words between parts that are filled in: `Layer … of …`
    TemplateLiteral(node) {
      const text = node.quasis.map(({ value }) => value.cooked).join('…');
      if (!keys.has(node) && isMessage(text)) add(node.start, text);
    },
    JSXText({ start, value }) {
      const text = value.replace(/\s+/g, ' ').trim();
      if (/\p{L}/u.test(text)) add(start + value.search(/\S/), text);
    },
  }).visit(parseSync(file, code).program);
  return found;
}

const messages = filesBelow('src', /\.tsx?$/)
  .filter((file) => !/\.test\.|\.test\.support|\.oracle\.|\.d\.ts$/.test(file))
  .flatMap(messagesOf);

test('every message is on the list, and none has an old word', () => {
  mkdirSync(join(root, 'test-results'), { recursive: true });
  const lines = messages.map(({ file, line, text }) => `${file}:${line}\t${text}`);
  writeFileSync(join(root, 'test-results/messages.txt'), `${lines.join('\n')}\n`);
  expect(messages.some(({ text }) => text === 'Merge')).toBe(true);
  expect(messages.some(({ text }) => text.includes('Density 1'))).toBe(true);
  const wrong = messages.flatMap(({ file, line, text }) =>
    OLD_WORDS.filter(([old]) => old.test(text)).map(([, now]) => `${file}:${line}: “${text}” (${now})`),
  );
  expect(wrong).toEqual([]);
});

test('no page of the docs and no identifier has an old word', () => {
  const pages = ['README.md', 'CONTRIBUTING.md', ...filesBelow('docs', /\.md$/)];
  const wrong = pages
    .filter((page) => page !== 'docs/glossary.md')
    .flatMap((page) =>
      readFileSync(join(root, page), 'utf8')
        .split('\n')
        .flatMap((line, i) =>
          OLD_WORDS.filter(([old]) => old.test(line)).map(([, now]) => `${page}:${i + 1}: ${line} (${now})`),
        ),
    );
  const code = filesBelow('src', /\.tsx?$/).filter((file) => file !== 'src/messages.test.ts');
  const identifiers = code.filter((file) => /foret(ell|old)/i.test(readFileSync(join(root, file), 'utf8')));
  expect([...wrong, ...identifiers]).toEqual([]);
});
