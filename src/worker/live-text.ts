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
  const use = async <T>(work: (kept: KeptModel) => Promise<T>): Promise<T> => {
    try {
      kept ??= (await import('../evaluate/kept-model')).keepModel();
      return await work(kept);
    } catch (thrown) {
      // one that was stopped is as good as before
      if (!(thrown instanceof AmalgamError && thrown.code === 'Canceled')) kept?.close();
      throw thrown;
    }
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
    /** Does something with the model. @throws what `work` throws; the model is closed then, unless it was stopped */
    use,
    /**
     * Has a text written.
     * @param ready plans a recipe and works out what its merge needs
     * @throws as `use`
     */
    async write<T>(
      ready: (recipe: Recipe) => Promise<ReadyRecipe>,
      work: (live: LiveText) => Promise<T>,
    ): Promise<T> {
      isWriting = true;
      const turn = async () => {
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
      };
      return use((model) => work({ kept: model, turn })).finally(() => {
        isWriting = false;
        answer(false);
      });
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
