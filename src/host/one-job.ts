/** One job at a time: jobs share the device and the storage. */
import { AmalgamError } from '../errors';
import { endThreads } from './threads';

interface OneJob {
  /**
   * Runs `work` unless another job is running. A job that `yields` is stopped as soon as another wants to run.
   * @throws AmalgamError `Busy`, `Canceled`, and what `work` throws
   */
  run<T>(work: (signal: AbortSignal) => Promise<T>, options?: { yields?: boolean }): Promise<T>;
  /** Stops the running job, if there is one, and its threads at once. */
  cancel(): void;
}

export function oneJob(): OneJob {
  let current: { controller: AbortController; yields: boolean; ended: Promise<void> } | undefined;
  return {
    async run(work, { yields = false } = {}) {
      while (current?.yields && !yields) {
        current.controller.abort();
        await current.ended;
      }
      if (current) {
        throw new AmalgamError('Busy', 'Another job is still running.', 'Wait for it, or cancel it first.');
      }
      const controller = new AbortController();
      controller.signal.addEventListener('abort', endThreads);
      let end = () => {};
      const ended = new Promise<void>((resolve) => {
        end = resolve;
      });
      current = { controller, yields, ended };
      try {
        return await work(controller.signal);
      } catch (thrown) {
        if (!controller.signal.aborted) throw thrown;
        throw new AmalgamError('Canceled', 'Canceled.', 'Nothing was saved. Start again when you like.', {
          cause: thrown,
        });
      } finally {
        current = undefined;
        end();
      }
    },
    cancel() {
      current?.controller.abort();
    },
  };
}
