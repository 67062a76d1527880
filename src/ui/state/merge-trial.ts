/** The step after a merge: is it better than what went in? */
import { openSampleTexts } from './evaluation';
import { evaluationRows } from './evaluation-rows';
import { write } from './generation';
import { measure } from './measurement';
import { type Studio, showTab } from './studio';

/**
 * Has base, contributors and merge continue the same prompt, and measures their perplexity on the chosen texts. A user
 * who stops the first does not get the second. Never rejects.
 */
export async function tryMerge(studio: Studio): Promise<void> {
  showTab(studio, 'evaluate');
  const { recipe, models } = studio.store.getState();
  const rows = evaluationRows(recipe, models).filter((r) => r.group === 'models' || r.current);
  await openSampleTexts(studio);
  await write(studio, rows);
  const { columns } = studio.store.getState().generation;
  if (columns.every(({ status }) => status !== 'canceled')) await measure(studio, rows);
}
