/** Similarity and retrieval, scored on several models and merges side by side by the embeddings they make. */
import { errorReport } from '../errors';
import { readRows } from '../forward/queue';
import { withoutHead } from '../models/headless';
import type { ScoredModel, ScoreTasksReport, ScoreTasksRequest, TaskItem } from '../reports/tasks';
import { scoreEmbedded } from '../tasks/embedding-metrics';
import { aggregate } from '../tasks/metrics';
import { openEmbedder, type Pooled, type RoledText, type TextRole } from './embedder';
import { harnessMaxLength } from './encoded-pairs';
import { type GroupedPasses, groupedPasses } from './grouped-passes';
import { plannedFile, type RunningModel } from './running-model';
import { type Entry, runSideBySide } from './side-by-side';
import { mostTokens, type ReadTask, type ScoreTasksOptions } from './task-rows';

/** A text that is embedded, as a sequence of tokens. */
interface Embedded {
  ids: number[];
  left: number;
  vector: Float64Array<ArrayBuffer>;
}

/** What its items need: texts by what they are for. */
const keyOf = (text: string, role: TextRole) => `${role} ${text}`;

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
  { plan, config, architecture }: Entry,
  { runner, tensor, tokenizer: opened }: RunningModel,
  tasks: readonly ReadTask[],
  { models, signal }: ScoreTasksOptions,
): Promise<{ work: Embeddings; words: string }> {
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
        asked.set(keyOf(text, role), { text, role });
      }
    }
  }
  const encoded = await embedder.encode([...asked.values()]);
  const texts = new Map(
    [...asked.keys()].map((key, i): [string, Embedded] => [
      key,
      { ...encoded[i]!, vector: new Float64Array(0) },
    ]),
  );
  const groups = grouped([...texts.values()], runner.rowsPerPass);
  let pooled: Pooled[] = [];
  const passes = groupedPasses({
    groups,
    rowsOf: (group) => group.reduce((sum, { ids }) => sum + ids.length, 0),
    start(group) {
      pooled = group.map(({ ids, left }) => embedder.pooled(ids.length, left));
      return runner.startPass({
        sequences: group.map(({ ids }) => ({ ids })),
        output: 'none',
        signal,
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
      for (const [i, text] of group.entries()) text.vector = pooled[i]!.end();
    },
  });
  return {
    words: embedder.words,
    work: {
      get progress() {
        return passes.progress;
      },
      step: () => passes.step(),
      close: () => passes.close(),
      items: () =>
        tasks.map(({ task, items }) =>
          scoreEmbedded(task.outputType, items, embedder.similarity, (text, i) => {
            return texts.get(keyOf(text, roleOf(task.outputType, i)))!.vector;
          }),
        ),
    },
  };
}

/** The first text of an item of retrieval asks, the others answer. */
const roleOf = (outputType: string, place: number): TextRole =>
  outputType !== 'retrieval' ? 'text' : place === 0 ? 'query' : 'document';

/** As many at once as there is room for, those of about one length together. */
function grouped(texts: readonly Embedded[], rowsPerPass: number): Embedded[][] {
  const groups: Embedded[][] = [];
  let rows = 0;
  for (const text of [...texts].sort((a, b) => a.ids.length - b.ids.length)) {
    if (groups.length === 0 || rows + text.ids.length > rowsPerPass) {
      groups.push([]);
      rows = 0;
    }
    groups.at(-1)!.push(text);
    rows += text.ids.length;
  }
  return groups;
}
