/** Similarity and retrieval, scored on several models and merges side by side by embeddings, or by heads that score pairs. */
import { errorReport } from '../errors';
import { readRows } from '../forward/queue';
import { withoutHead } from '../models/score-head';
import type { ScoredModel, ScoreTasksReport, ScoreTasksRequest, TaskItem } from '../reports/tasks';
import { pairsOf, scoreEmbedded } from '../tasks/embedding-metrics';
import { aggregate } from '../tasks/metrics';
import { openCrossEncoder, scoringClass } from './cross-encoder';
import { openEmbedder, type Pooled, type RoledText, type TextRole, type Vector } from './embedder';
import { harnessMaxLength } from './encoded-pairs';
import { type GroupedPasses, groupedPasses } from './grouped-passes';
import { plannedFile, type RunningModel } from './running-model';
import { type Entry, runSideBySide } from './side-by-side';
import { mostTokens, type ReadTask, type ScoreTasksOptions } from './task-rows';

/** A text that is embedded, or a pair that is scored, as a sequence of tokens. */
interface ReadSequence {
  ids: number[];
  types?: number[];
  pooled(): Pooled;
  /** What came of it. */
  vector: Vector;
}

/** What a model reads for its tasks, and how alike it makes two texts of one of them once it has. */
interface ReadTexts {
  words: string;
  sequences: readonly ReadSequence[];
  alike(outputType: string, one: string, other: string): number;
}

const keyOf = (...parts: string[]) => parts.join('\0');

/** Embeddings of a model that is at work. */
interface Embeddings extends GroupedPasses {
  /** Scores of every task, in their order. */
  items(): TaskItem[][];
}

/** Scores every task on every target. A target that cannot be run is an error in its place. @throws as `runTasks` */
export async function scoreEmbeddings(
  request: ScoreTasksRequest,
  tasks: readonly ReadTask[],
  options: ScoreTasksOptions,
): Promise<ScoreTasksReport> {
  const { targets } = request;
  const models = targets.map((): ScoredModel => ({ tasks: [], tokens: 0, seconds: 0, engine: null }));
  const report = await runSideBySide<Embeddings>(
    {
      targets,
      engine: request.engine,
      masked: true,
      architecture: withoutHead,
      tokens: mostTokens(tasks),
      async begin(entry, model) {
        models[entry.index]!.engine = model.runner.engine.kind;
        const { work, words } = await startEmbedding(entry, model, tasks, options);
        models[entry.index]!.embedding = words;
        return work;
      },
      end({ index }, work, seconds) {
        Object.assign(models[index]!, { tokens: work.progress.tokens, seconds });
        const all = work.items();
        models[index]!.tasks = tasks.map(({ task }, t) => {
          const items = all[t]!;
          return { score: { metrics: aggregate(task.metrics, items), items } };
        });
        const items = all.flatMap((own, task) => own.map((item) => ({ model: index, task, item })));
        options.onProgress({ phase: 'running', done: 0, total: 0, rate: 0, secondsLeft: null, items });
      },
      fail(index, thrown) {
        models[index]!.tasks = tasks.map(() => ({ error: errorReport(thrown) }));
      },
      onProgress: options.onProgress,
    },
    options,
  );
  const { seconds, bytesRead, peakBytes } = report;
  return { tasks: tasks.map(({ info }) => info), models, seconds, bytesRead, peakBytes };
}

async function startEmbedding(
  entry: Entry,
  model: RunningModel,
  tasks: readonly ReadTask[],
  options: ScoreTasksOptions,
): Promise<{ work: Embeddings; words: string }> {
  const { runner } = model;
  const { hidden } = entry.architecture;
  const read = scoringClass(entry.config) === undefined ? embeddedTexts : scoredPairs;
  const { words, sequences, alike } = await read(entry, model, tasks, options);
  let pooled: Pooled[] = [];
  const passes = groupedPasses({
    // those of about one length together
    items: [...sequences].sort((a, b) => a.ids.length - b.ids.length),
    rowsOf: ({ ids }) => ids.length,
    mostOf: () => runner.rowsPerPass,
    start(group) {
      pooled = group.map((one) => one.pooled());
      return runner.startPass({
        sequences: group.map(({ ids, types }) => (types ? { ids, types } : { ids })),
        output: 'none',
        signal: options.signal,
        taps: {
          async normed(rows) {
            const values = await readRows(rows);
            for (const { sequence, row, begin, count } of rows.pieces) {
              for (let i = 0; i < count; i++)
                pooled[sequence]!.add(values.subarray((row + i) * hidden, (row + i + 1) * hidden), begin + i);
            }
          },
        },
      });
    },
    finish(group) {
      for (const [i, one] of group.entries()) one.vector = pooled[i]!.end();
    },
  });
  return {
    words,
    work: {
      get progress() {
        return passes.progress;
      },
      step: () => passes.step(),
      close: () => passes.close(),
      items: () =>
        tasks.map(({ task: { outputType }, items }) =>
          scoreEmbedded(outputType, items, (one, other) => alike(outputType, one, other)),
        ),
    },
  };
}

/** Every text once for each thing that it is for. */
async function embeddedTexts(
  { plan, config, architecture }: Entry,
  { tensor, tokenizer: opened }: RunningModel,
  tasks: readonly ReadTask[],
  { models, signal }: ScoreTasksOptions,
): Promise<ReadTexts> {
  const tokenizer = await opened();
  const { hidden, maxPositions } = architecture;
  const most = harnessMaxLength(config.raw, tokenizer.maxLength);
  const read = (path: string) => plannedFile(plan, models, path, signal);
  const embedder = await openEmbedder(read, tensor, tokenizer, hidden, Math.min(most, maxPositions ?? most));
  const asked = new Map<string, RoledText>();
  for (const { task, items } of tasks) {
    for (const { requests } of items) {
      for (const [i, { context: text }] of requests.entries()) {
        const role = roleOf(task.outputType, i);
        asked.set(keyOf(role, text), { text, role });
      }
    }
  }
  const encoded = await embedder.encode([...asked.values()]);
  const texts = new Map(
    [...asked.keys()].map((key, i): [string, ReadSequence] => {
      const { ids, left } = encoded[i]!;
      return [key, { ids, pooled: () => embedder.pooled(ids.length, left), vector: new Float64Array(0) }];
    }),
  );
  const vectorOf = (outputType: string, text: string, place: number) =>
    texts.get(keyOf(roleOf(outputType, place), text))!.vector;
  return {
    words: embedder.words,
    sequences: [...texts.values()],
    alike: (outputType, one, other) =>
      embedder.similarity(vectorOf(outputType, one, 0), vectorOf(outputType, other, 1)),
  };
}

/** Every two texts that are compared once. */
async function scoredPairs(
  { config, architecture }: Entry,
  { tensor, tokenizer: opened }: RunningModel,
  tasks: readonly ReadTask[],
): Promise<ReadTexts> {
  const tokenizer = await opened();
  const { maxPositions: rows = Number.POSITIVE_INFINITY } = architecture;
  const { maxLength = rows } = tokenizer;
  const most = Math.min(harnessMaxLength(config.raw, maxLength), maxLength, rows);
  const encoder = await openCrossEncoder(config, architecture, tensor, tokenizer, most);
  const asked = new Map(
    tasks
      .flatMap(({ task, items }) => pairsOf(task.outputType, items))
      .map((pair): [string, [string, string]] => [keyOf(...pair), pair]),
  );
  const encoded = await encoder.encode([...asked.values()]);
  const pairs = new Map(
    [...asked.keys()].map((key, i): [string, ReadSequence] => [
      key,
      { ...encoded[i]!, pooled: () => encoder.pooled(), vector: new Float64Array(0) },
    ]),
  );
  return {
    words: encoder.words,
    sequences: [...pairs.values()],
    alike: (_, one, other) => pairs.get(keyOf(one, other))!.vector[0]!,
  };
}

/** The first text of an item of retrieval asks, the others answer. */
const roleOf = (outputType: string, place: number): TextRole =>
  outputType !== 'retrieval' ? 'text' : place === 0 ? 'query' : 'document';
