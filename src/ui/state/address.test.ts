import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { metrics } from '../charts/metrics';
import { type AddressedView, viewIn, viewParameters } from './address';
import { initialState } from './studio';
import { TABS } from './tabs';

const view = fc.record<AddressedView>({
  tab: fc.constantFrom(...TABS.map(({ id }) => id)),
  metric: fc.constantFrom(null, ...metrics.map((m) => m.id)),
  subject: fc.option(fc.string({ minLength: 1, unit: 'grapheme' })),
  runs: fc.uniqueArray(fc.constantFrom('now', 'p1', 'p2', '1795400329897-57a69b1281f2'), { minLength: 1 }),
  expanded: fc.option(fc.constant('mlp.experts.*.gate_proj')),
  filter: fc.string({ unit: 'grapheme' }),
  selected: fc.option(fc.constant('model.layers.0.mlp.down_proj.weight')),
});

describe('the view in an address', () => {
  test('comes back whole', () => {
    fc.assert(
      fc.property(view, (shown) => {
        const well = {
          ...shown,
          filter: shown.filter.toWellFormed(),
          subject: shown.subject?.toWellFormed() ?? null,
        };
        expect(viewIn(`#${viewParameters(well)}`)).toEqual(well);
      }),
    );
  });

  test('a first visit says nothing', () => {
    expect(viewParameters(initialState.view).toString()).toBe('');
    expect(viewIn('')).toEqual(viewIn(`#${viewParameters(initialState.view)}`));
  });

  test('what means nothing is as on a first visit', () => {
    const odd = viewIn('#tab=nowhere&metric=x&runs=<b>,,&recipe=abc');
    const { tab, metric, runs } = initialState.view;
    expect(odd).toMatchObject({ tab, metric, runs });
  });
});
