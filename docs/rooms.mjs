/** Draws the rooms of src in docs/design.md from what their files import: `npm run docs:rooms`. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseSync, Visitor } from 'vite';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const FILE = join(ROOT, 'docs/design.md');
const BEGIN = '<!-- written by `npm run docs:rooms`: begin -->';
const END = '<!-- written by `npm run docs:rooms`: end -->';

/**
 * The room of a file: the first folder below `src`, or its own name at the root. What draws a tool (its name begins with a
 * capital) belongs to the studio, its verb to the command, wherever they lie.
 * @param {string} path below `src` @returns {string}
 */
export function roomOf(path) {
  const [room = '', , file = ''] = path.split('/');
  if (room !== 'tools') return room;
  return /^[A-Z]|\.css$/.test(file) ? 'ui' : /^verb\b/.test(file) ? 'cli' : room;
}

/**
 * What a parsed file imports: by statement, when it is called, or as a type.
 * @param {import('vite').ESTree.Program} program @returns {{ specifier: string, typeOnly: boolean }[]}
 */
export function importsIn(program) {
  const found = [];
  const add = ({ value }, kind) => found.push({ specifier: value, typeOnly: kind === 'type' });
  new Visitor({
    ImportDeclaration: ({ source, importKind }) => add(source, importKind),
    ExportNamedDeclaration: ({ source, exportKind }) => source && add(source, exportKind),
    ExportAllDeclaration: ({ source, exportKind }) => add(source, exportKind),
    ImportExpression: ({ source }) => typeof source.value === 'string' && add(source),
    TSImportType: ({ source }) => add(source, 'type'),
  }).visit(program);
  return found;
}

/** @returns {Map<string, Set<string>>} for each room, the rooms that its product files import */
function importsOfRooms() {
  const rooms = new Map();
  for (const path of readdirSync(join(ROOT, 'src'), { recursive: true }).map((name) =>
    posix.normalize(name),
  )) {
    if (!path.includes('/') || !/\.tsx?$/.test(path) || /\.(test|cases|oracle)\.|fixture|\.d\.ts$/.test(path))
      continue;
    const room = roomOf(path);
    const found = rooms.get(room) ?? new Set();
    rooms.set(room, found);
    const { program } = parseSync(path, readFileSync(join(ROOT, 'src', path), 'utf8'));
    for (const { specifier } of importsIn(program)) {
      const target = posix.join(dirname(path), specifier);
      const isInRoom = specifier.startsWith('.') && !target.startsWith('..');
      if (isInRoom && (target.includes('/') || target === 'tools')) found.add(roomOf(target));
    }
    found.delete(room);
  }
  return rooms;
}

/** The arrows that no other way makes needless, so that the drawing can be read. */
function withoutDetours(rooms) {
  const reaches = (from, to, seen = new Set()) =>
    [...(rooms.get(from) ?? [])].some(
      (next) => next === to || (!seen.has(next) && reaches(next, to, seen.add(next))),
    );
  return [...rooms].flatMap(([room, needs]) =>
    [...needs]
      .filter((need) => ![...needs].some((other) => other !== need && reaches(other, need)))
      .map((need) => [room, need]),
  );
}

/** @param {string} page docs/design.md @returns it with the drawing as the imports are now */
export function withRooms(page) {
  const arrows = withoutDetours(importsOfRooms())
    .map(([room, need]) => `  ${room} --> ${need}`)
    .sort();
  const before = page.slice(0, page.indexOf(BEGIN) + BEGIN.length);
  const after = page.slice(page.indexOf(END));
  return `${before}\n\n\`\`\`mermaid\nflowchart TD\n${arrows.join('\n')}\n\`\`\`\n\n${after}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(FILE, withRooms(readFileSync(FILE, 'utf8')));
}
