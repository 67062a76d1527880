/**
 * The little of vitest that the contract tests of kernels and methods use, for a page in any browser: vitest's own drivers
 * start no Firefox of the system. In place of `vitest` by an alias (contracts.ts); what is missing here fails loudly.
 */

type Act = (...args: never[]) => unknown;
interface Case {
  title: string;
  act(): unknown;
}

const cases: Case[] = [];
const path: string[] = [];
const before: (() => unknown)[] = [];
const after: (() => unknown)[] = [];

const titled = (title: string, args: readonly unknown[]) => {
  let next = 0;
  return title.replace(/%[sidj]/g, () => String(args[next++]));
};
const rows = (table: readonly unknown[]) => table.map((row) => (Array.isArray(row) ? row : [row]));

export function describe(title: string, act: () => void): void {
  path.push(title);
  act();
  path.pop();
}
describe.each = (table: readonly unknown[]) => (title: string, act: Act) => {
  for (const row of rows(table)) describe(titled(title, row), () => act(...(row as never[])));
};

export function it(title: string, act: () => unknown): void {
  cases.push({ title: [...path, title].join(' › '), act });
}
it.each = (table: readonly unknown[]) => (title: string, act: Act) => {
  for (const row of rows(table)) it(titled(title, row), () => act(...(row as never[])));
};
export const test = it;
export const beforeAll = (act: () => unknown): number => before.push(act);
export const afterAll = (act: () => unknown): number => after.push(act);

/** Where two values differ, as a path, or undefined. */
function difference(a: unknown, b: unknown, at = ''): string | undefined {
  if (Object.is(a, b)) return undefined;
  const differ = `${at}: ${String(a).slice(0, 60)} is not ${String(b).slice(0, 60)}`;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return differ;
  if (Array.isArray(a) !== Array.isArray(b) || a instanceof Map !== b instanceof Map) return differ;
  // as in vitest, what is undefined is not there
  const own = (value: object) =>
    value instanceof Map ? [...value] : Object.entries(value).filter(([, v]) => v !== undefined);
  const [x, y] = [own(a), new Map<unknown, unknown>(own(b))];
  if (x.length !== y.size) return `${at}: ${x.length} entries, not ${y.size}`;
  for (const [key, value] of x) {
    const found = difference(value, y.get(key), `${at}.${String(key)}`);
    if (found !== undefined) return found;
  }
  return undefined;
}

export function expect(value: unknown, message = '') {
  const n = value as number;
  const check = (holds: boolean, what: string) => {
    if (!holds) throw new Error(`${message} ${JSON.stringify(value)?.slice(0, 200)} ${what}`);
  };
  return {
    toBe: (other: unknown) => check(Object.is(value, other), `is not ${String(other)}`),
    toEqual(other: unknown) {
      const found = difference(value, other);
      if (found !== undefined) throw new Error(`${message} ${found}`);
    },
    toBeLessThan: (other: number) => check(n < other, `is not below ${other}`),
    toBeLessThanOrEqual: (other: number) => check(n <= other, `is above ${other}`),
    toBeGreaterThan: (other: number) => check(n > other, `is not above ${other}`),
    toBeGreaterThanOrEqual: (other: number) => check(n >= other, `is below ${other}`),
    toBeCloseTo: (other: number, digits = 2) =>
      check(Math.abs(n - other) < 10 ** -digits / 2, `is not close to ${other}`),
  };
}

/** Runs what was declared since the last call. @param begins called with each test @returns the number that passed, and the errors of the others */
export async function runCases(
  begins: (title: string) => void,
): Promise<{ passed: number; failed: string[] }> {
  const failed: string[] = [];
  let passed = 0;
  for (const act of before.splice(0)) await act();
  for (const { title, act } of cases.splice(0)) {
    begins(title);
    try {
      await act();
      passed++;
    } catch (thrown) {
      failed.push(`${title}: ${thrown instanceof Error ? thrown.message : String(thrown)}`);
    }
  }
  for (const act of after.splice(0)) await act();
  return { passed, failed };
}
