/** Texts and prompt of the sample: chosen for the sample family, which learned them, and for no other models. */
import { PROMPT, SAMPLE_PROMPT } from './generation-state';
import { editSlice, type Studio, type StudioState } from './studio';

/** Whether every model of the recipe is of the sample family. */
export function isOfSample({ recipe: { base, contributors, origins } }: StudioState): boolean {
  const refs = [...(base === null ? [] : [base]), ...contributors.map((c) => c.ref)];
  return refs.every((ref) => origins[ref]?.kind === 'sample' || ref.startsWith('samples/'));
}

/** Texts and prompt of the sample are chosen while the recipe is of the sample; returns what stops. */
export function watchSampleTexts(studio: Studio): () => void {
  return studio.store.subscribe((now, before) => {
    if (now.recipe === before.recipe) return;
    const sample = isOfSample(now);
    if (sample === isOfSample(before)) return;
    const prompt = sample ? SAMPLE_PROMPT : PROMPT;
    editSlice(studio, 'measure', ({ texts }) => ({
      texts: texts.map((t) => (t.origin === 'sample' ? { ...t, chosen: sample } : t)),
    }));
    // one that a user wrote stays
    editSlice(studio, 'generation', ({ settings }) => ({
      settings: [SAMPLE_PROMPT, PROMPT].includes(settings.prompt) ? { ...settings, prompt } : settings,
    }));
  });
}
