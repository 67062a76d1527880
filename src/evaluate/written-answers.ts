/** Tasks whose answers a model writes, scored on one model or merge after the other: greedily, many answers side by side. */
import type { GuardedTokenizer } from '../foreign/foreign-text';
import type { BackendKind } from '../reports/backend';
import type { RunningProgress } from '../reports/evaluate';
import type { ScoreTasksRequest, TaskItem } from '../reports/tasks';
import { runningAt } from '../reports/time-left';
import { scoreWritten } from '../tasks/metrics';
import type { Item } from '../tasks/task-items';
import { cutAnswer } from '../tasks/written-answers';
import { harnessMaxLength } from './encoded-pairs';
import { GREEDY, generate, writingRunner } from './generation';
import { promptIds, textOf } from './generation-job';
import { openRunningModel, plannedConfig, plannedTokenizer, type RunningModel } from './running-model';
import { sequencesAtOnce } from './sampled-texts';
import { isWritten, type ReadTask, refusedItem, type ScoreTasksOptions } from './task-rows';

interface AnswersSink {
  onItems(model: number, task: number, items: TaskItem[]): void;
  onProgress(progress: RunningProgress): void;
  end(model: number, done: { tokens: number; seconds: number; engine: BackendKind }): void;
  /** A model fails alone; the others go on. */
  fail(model: number, thrown: unknown): void;
}

interface Asked {
  task: number;
  item: Item;
  ids: number[];
}

/** Tokens between two looks for a text that ends an answer, and those that may hold a part of one before. */
const LOOK = 8;
const BEHIND = 16;

/** Writes the answers to all items of tasks that ask for some. @throws AmalgamError `Canceled` */
export async function writeAnswers(
  { targets, engine }: Pick<ScoreTasksRequest, 'targets' | 'engine'>,
  tasks: readonly ReadTask[],
  options: ScoreTasksOptions,
  sink: AnswersSink,
): Promise<void> {
  const { models, signal } = options;
  const all = tasks.flatMap(({ task, items }, t) =>
    isWritten(task) ? items.map((item) => ({ task: t, item })) : [],
  );
  const most = all.reduce((sum, { item }) => sum + (item.written?.maxTokens ?? 0), 0);
  const total = most * targets.length;
  const begun = performance.now();
  for (const [index, target] of targets.entries()) {
    const at = performance.now();
    let [tokens, done] = [0, index * most];
    const tell = () => sink.onProgress(runningAt(done, total, (performance.now() - begun) / 1000));
    let model: RunningModel | undefined;
    let tokenizer: GuardedTokenizer | undefined;
    try {
      const ready = await options.plan(target);
      model = await openRunningModel({
        ...{ ...ready, models, engine, signal, runner: writingRunner() },
        onProgress: sink.onProgress,
      });
      const { runner, ends } = model;
      const { architecture } = runner;
      // one thread decodes all
      tokenizer = await plannedTokenizer(ready.plan, models, architecture.vocab, signal, true);
      const { asked, refused } = await ask(model, tokenizer, all, ready.plan, options);
      for (const { task, item, why } of refused) sink.onItems(index, task, [refusedItem(item, why)]);
      for (let first = 0; first < asked.length; ) {
        const batch = nextBatch(asked.slice(first), (length) => sequencesAtOnce(runner, length));
        first += batch.length;
        const own = tokenizer;
        const written = batch.map((): number[] => []);
        const results = await generate(
          runner,
          batch.map(({ ids }) => ids),
          {
            maxTokens: Math.max(...batch.map(({ item }) => item.written!.maxTokens)),
            ...{ sampling: GREEDY, stop: ends, signal },
            async onToken({ sequence, id }) {
              const { item, ids } = batch[sequence]!;
              const { until, maxTokens } = item.written!;
              const so = written[sequence]!;
              so.push(id);
              tokens++;
              done++;
              if (sequence === 0) tell();
              if (so.length >= maxTokens) return 'end';
              if (until.length === 0 || so.length % LOOK !== 0) return undefined;
              const from = Math.max(0, so.length - LOOK - BEHIND);
              const end = await textOf(own, [...ids, ...so.slice(0, from)].slice(-LOOK), so.slice(from));
              return cutAnswer(end, until) === end ? undefined : 'end';
            },
          },
        );
        for (const [i, { ids }] of results.entries()) {
          const { item, task, ids: prompt } = batch[i]!;
          const text = cutAnswer(await textOf(tokenizer, prompt, ids), item.written!.until);
          done += item.written!.maxTokens - ids.length;
          sink.onItems(index, task, [scoreWritten(item, text)]);
        }
        tell();
      }
      sink.end(index, { tokens, seconds: (performance.now() - at) / 1000, engine: runner.engine.kind });
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      sink.fail(index, thrown);
    } finally {
      tokenizer?.close();
      model?.close();
    }
  }
}

/** As many of the first as fit side by side with the length of the longest. */
function nextBatch(asked: readonly Asked[], atOnce: (length: number) => number): Asked[] {
  const batch: Asked[] = [];
  let longest = 0;
  for (const one of asked) {
    const length = Math.max(longest, one.ids.length + one.item.written!.maxTokens);
    if (batch.length > 0 && batch.length + 1 > atOnce(length)) break;
    longest = length;
    batch.push(one);
  }
  return batch;
}

/** Prompts as tokens: cut from the left where they and their answer exceed the model, as the harness does. */
async function ask(
  model: RunningModel,
  tokenizer: GuardedTokenizer,
  all: readonly Omit<Asked, 'ids'>[],
  plan: Parameters<typeof plannedTokenizer>[0],
  { models, signal }: ScoreTasksOptions,
) {
  const { raw } = await plannedConfig(plan, models, signal);
  const most = harnessMaxLength(raw, tokenizer.maxLength);
  const maxLength = Math.min(most, model.runner.architecture.maxPositions ?? most);
  const isChat = (await model.chatTemplate()) !== undefined;
  const asked: Asked[] = [];
  const refused: (Omit<Asked, 'ids'> & { why: string })[] = [];
  for (const one of all) {
    const { written, requests, refused: why } = one.item;
    if (why !== undefined || !written) {
      refused.push({ ...one, why: why ?? '' });
      continue;
    }
    const room = maxLength - written.maxTokens;
    if (room < 1) {
      const words = `An answer may have ${written.maxTokens} tokens; the model takes ${maxLength}.`;
      refused.push({ ...one, why: words });
      continue;
    }
    const prompt = { prompt: requests[0]!.context, chat: written.chat && isChat };
    asked.push({ ...one, ids: (await promptIds(model, tokenizer, prompt, signal)).slice(-room) });
  }
  return { asked, refused };
}
