/**
 * A text whose model stays open for the next one, and which goes on with another recipe where it is steered to one. While no text
 * is written, the model may be measured.
 */
import { AmalgamError } from '../errors';
import type { LiveText } from '../evaluate/generation-job';
import type { KeptModel, ReadyRecipe } from '../evaluate/kept-model';
import type { Recipe } from '../formats/recipe';
import { throwIfCanceled } from '../sources/cancellation';

export type LiveTexts = ReturnType<typeof openLiveText>;

export function openLiveText() {
  let kept: KeptModel | undefined;
  let isWriting = false;
  let wanted: { recipe: Recipe; answer(taken: boolean): void } | undefined;
  let measuring: { stop: AbortController; ended: Promise<unknown> } | undefined;
  /** Whatever is measured has no claim to the model once something else needs it. */
  const stopMeasuring = async () => {
    measuring?.stop.abort();
    await measuring?.ended;
  };
  const opened = async () => {
    kept ??= (await import('../evaluate/kept-model')).keepModel();
    return kept;
  };
  const answer = (taken: boolean) => {
    wanted?.answer(taken);
    wanted = undefined;
  };
  return {
    /** Closes the model: another job needs its memory. */
    async release(): Promise<void> {
      await stopMeasuring();
      kept?.close();
    },
    /**
     * Has the model measured until something else needs it: one at a time.
     * @throws AmalgamError `Busy`, `Canceled`, and what `work` throws
     */
    async measure<T>(work: (kept: KeptModel, signal: AbortSignal) => Promise<T>): Promise<T> {
      if (measuring || isWriting)
        throw new AmalgamError('Busy', 'The model is in use.', 'Wait until it is free.');
      const stop = new AbortController();
      const working = opened().then((model) => {
        throwIfCanceled(stop.signal);
        return work(model, stop.signal);
      });
      measuring = { stop, ended: working.catch(() => undefined) };
      try {
        return await working;
      } catch (thrown) {
        // between two steps it is as good as before
        if (!stop.signal.aborted) kept?.close();
        throw thrown;
      } finally {
        measuring = undefined;
      }
    },
    /**
     * Has a text written.
     * @param ready plans a recipe and works out what its merge needs
     * @throws what `work` throws; the model is closed then, unless the text was stopped
     */
    async write<T>(
      ready: (recipe: Recipe) => Promise<ReadyRecipe>,
      work: (live: LiveText) => Promise<T>,
    ): Promise<T> {
      isWriting = true;
      try {
        await stopMeasuring();
        const model = await opened();
        return await work({
          kept: model,
          async turn() {
            const one = wanted;
            if (!one) return undefined;
            try {
              const found = await ready(one.recipe);
              const taken = (is: boolean) => {
                if (wanted === one) answer(is);
                else one.answer(is);
              };
              return { ...found, taken };
            } catch (thrown) {
              if (!(thrown instanceof AmalgamError) || thrown.code === 'Canceled') throw thrown;
              if (wanted === one) answer(false);
              return undefined;
            }
          },
        });
      } catch (thrown) {
        // one that was stopped is as good as before
        if (!(thrown instanceof AmalgamError && thrown.code === 'Canceled')) kept?.close();
        throw thrown;
      } finally {
        isWriting = false;
        answer(false);
      }
    },
    /** Whether the text that is being written goes on with this recipe; another one may come before it is taken. */
    steer(recipe: Recipe): Promise<boolean> {
      answer(false);
      if (!isWriting) return Promise.resolve(false);
      return new Promise((resolve) => {
        wanted = { recipe, answer: resolve };
      });
    },
  };
}
