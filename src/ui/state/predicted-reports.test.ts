import { expect, it } from 'vitest';
import { Predictor } from '../../merge/prediction/predictor';
import { fixtureWorker } from '../worker.test.fixture';
import { runOf } from './predicted-runs';
import { emptyRecipe } from './recipe-state';
import { NOW } from './runs';
import { createStudio } from './studio';

it('forgets what predicted a run once the run is gone', () => {
  const studio = createStudio(fixtureWorker());
  const run = (id: string) => runOf(emptyRecipe, [], id);
  for (const id of [NOW, 'p1', 'p2']) studio.predictors.set(id, new Predictor());
  const kept = studio.predictors.get('p2');
  studio.store.setState({ runs: [run('p1'), run('p2')] });
  expect([...studio.predictors.keys()]).toEqual([NOW, 'p1', 'p2']);
  studio.store.setState({ runs: [run('p2')] });
  expect([...studio.predictors.keys()]).toEqual([NOW, 'p2']);
  expect(studio.predictors.get('p2')).toBe(kept);
});
