import { expect, test } from 'vitest';
import { type Contender, conclusion, leading } from './conclusion';
import { TOO_SHORT } from './paired-error';
import { partsOf } from './text-parts';

/** Losses of twelve blocks around a mean. */
const of = (label: string, kind: Contender['kind'], mean: number, noise = 0.001): Contender => {
  const block = (_: unknown, i: number) => ({ loss: 32 * (mean + (i % 2 ? noise : -noise)), tokens: 32 });
  return { label, kind, texts: [Array.from({ length: 12 }, block)] };
};

test('of a merge that was chosen elsewhere no lead is said inside the error, and none of the least mean', () => {
  const chosen = of('Linear', 'merge', 0.5);
  const others = [of('RAM', 'merge', 0.499, 0.02), of('Karcher', 'merge', 0.6)];
  const say = (all: Contender[], spoken = chosen) => {
    const field = { ...leading(all, chosen), all, isAccuracy: false, scope: 'on a text', left: 0 };
    expect(field.leader).toBe(chosen);
    const { lead, rest } = conclusion(spoken, field);
    return lead + rest;
  };
  expect(say([chosen, ...others])).toBe(
    'Linear was chosen among 3 merges: one cannot be told apart from it (RAM), on a text.',
  );
  expect(say([of('base', 'base', 0.4, 0.01), chosen, ...others])).toMatch(
    /^None of 3 merges is better than the base: Linear, which was chosen, is worse by/,
  );
  const now = of('now', 'merge', 0.501, 0.02);
  expect(say([now, chosen, ...others], now)).toMatch(
    /apart from Linear, chosen among 4 merges in Measure\.$/,
  );
  expect(say([chosen, of('RAM', 'merge', 0.501, 0.02)])).toMatch(/^Linear was chosen among 2 merges: one/);
  const here = leading([chosen, ...others], undefined);
  const field = { ...here, all: [chosen, ...others], isAccuracy: false, scope: 'on a text', left: 0 };
  const { lead, rest } = conclusion(here.leader!, field);
  // the least mean is no lead where the error is larger
  expect(lead + rest).toBe('RAM cannot be told apart from 1 of 2 other merges (Linear), on a text.');
});

test('merges whose difference no digit shows are equal, though it is outside the error; more text is no use', () => {
  const all = [of('RAM', 'merge', 0.5), of('RAM+', 'merge', 0.500_01), of('base', 'base', 0.7, 0.01)];
  const say = (least: number, chosen?: Contender) => {
    const field = { ...leading(all, chosen), all, isAccuracy: false, scope: 'on a text', left: 0, least };
    const { lead, rest, open } = conclusion(all[0]!, field);
    return { open, words: lead + rest };
  };
  expect(say(1e-6).words).toMatch(/^RAM is the best of 2 merges, on a text/);
  expect(say(1e-4).words).toMatch(/^RAM is equal here to 1 of 1 other merges \(RAM\+\), on a text/);
  expect(say(1e-4, all[0])).toMatchObject({
    ...{ open: [], words: expect.stringMatching(/^RAM was chosen among 2 merges: one is equal to it here/) },
  });
});

test('of a text that is too short for an error nothing is said but that, and how long it should be', () => {
  const short = (one: Contender): Contender => ({ ...one, texts: [one.texts[0]!.slice(0, 1)] });
  const all = [of('Linear', 'merge', 0.5), of('base', 'base', 0.9)].map(short);
  const field = { ...leading(all, undefined), all, isAccuracy: false, scope: 'on all of it', left: 0 };
  expect(conclusion(all[0]!, field)).toEqual({
    lead: 'Linear',
    rest: ` is measured, on all of it. ${TOO_SHORT}`,
    open: [],
  });
  // as long as it says, it has one, also of text without a space
  const [, length] = /needs (.*) characters/.exec(TOO_SHORT)!;
  const { reporting } = partsOf('x'.repeat(Number(length!.replace(/\D/g, ''))), 'x');
  expect(reporting[0]!.length).toBeGreaterThan(1);
});
