/** The table of families in docs/forward.md, from what runs and is checked. */
import type { Architecture } from '../src/models/architecture';
import { leavesOf, linearSites } from '../src/models/claim';
import { families } from '../src/models/families';
import { GGUF_ARCHITECTURES } from '../src/models/gguf-architectures';

/** Result of a model type's fixture once its check has passed. */
export interface CheckedType {
  /** Share of the blocks' linear weights whose inputs are seen. */
  seen: number;
}

const BEGIN = '<!-- written by `npm run docs:families`: begin -->';
const END = '<!-- written by `npm run docs:families`: end -->';

/** Share of the linear weights of all blocks whose inputs importance and Gram matrices see. */
export function seenShare({ blocks }: Architecture): number {
  const size = (linears: readonly { inputs: number; outputs: number }[]) =>
    linears.reduce((sum, { inputs, outputs }) => sum + inputs * outputs, 0);
  const seen = blocks.flatMap((block) => linearSites(block).flatMap(({ linears }) => linears));
  return size(seen) / size(leavesOf(blocks).linears);
}

/** The page with its table anew. */
export function withFamilies(page: string, checked: ReadonlyMap<string, CheckedType>): string {
  const [head, rest] = page.split(BEGIN);
  const tail = rest?.split(END)[1];
  if (head === undefined || tail === undefined)
    throw new Error('docs/forward.md has lost the marks of its table.');
  return `${head}${BEGIN}\n\n${familiesTable(checked)}\n\n${END}${tail}`;
}

/** Check of a type: its own, or that of another type with the same wiring. */
export function checkedType(
  type: string,
  checked: ReadonlyMap<string, CheckedType>,
): CheckedType | undefined {
  const wired = families.flatMap(({ modelTypes }) => Object.entries(modelTypes));
  const wiring = wired.find(([other]) => other === type)?.[1].wiring;
  const same = wired.find(([other, own]) => wiring && own.wiring === wiring && checked.has(other));
  return checked.get(type) ?? (same && checked.get(same[0]));
}

/** One row for all types that can do the same. */
function familiesTable(checked: ReadonlyMap<string, CheckedType>): string {
  const types = families
    .flatMap(({ modelTypes }) => Object.entries(modelTypes))
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const rows = new Map<string, string[]>();
  for (const [type, { wiring }] of types) {
    const found = checkedType(type, checked);
    const runs = wiring === undefined ? '—' : found ? 'yes' : 'unchecked';
    const seen = found && !wiring?.masked ? found.seen : 0;
    const isPart = seen > 0 && seen <= 0.9999;
    const abilities = [
      wiring?.masked && found ? 'masked' : runs,
      isPart ? 'part' : seen > 0 ? 'all' : '—',
      Object.hasOwn(GGUF_ARCHITECTURES, type) ? 'yes' : '—',
    ].join(' | ');
    const name = `\`${type}\`${isPart ? ` ${Math.round(100 * seen)} %` : ''}`;
    rows.set(abilities, [...(rows.get(abilities) ?? []), name]);
  }
  return [
    '| run | importance | GGUF | model types |',
    '| --- | --- | --- | --- |',
    ...[...rows]
      .sort(([, a], [, b]) => b.length - a.length)
      .map(([abilities, names]) => `| ${abilities} | ${names.join(', ')} |`),
  ].join('\n');
}
