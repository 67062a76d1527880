/** A text whose model stays open for the next one, and which goes on with another recipe where it is steered to one. */
import { AmalgamError } from '../errors';
import type { LiveText } from '../evaluate/generation-job';
import type { KeptModel, ReadyRecipe } from '../evaluate/kept-model';
import type { Recipe } from '../formats/recipe';

export type LiveTexts = ReturnType<typeof openLiveText>;

export function openLiveText() {
  let kept: KeptModel | undefined;
  let isWriting = false;
  let wanted: { recipe: Recipe; answer(taken: boolean): void } | undefined;
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
    release(): void {
      kept?.close();
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
