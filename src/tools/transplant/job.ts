/** Another model's tokenizer for a model: planned, or made and written. */
import type { Backend } from '../../backend/backend';
import { tokenize } from '../../evaluate/job';
import { DEFAULT_PROTOCOL, evaluateTexts } from '../../evaluate/perplexity';
import { openRunningModel, plannedTokenizer } from '../../evaluate/running-model';
import { createQueue } from '../../forward/queue';
import { openEvaluationBackends } from '../../host/backends';
import type { OpenModels } from '../../host/models';
import { type ProgressMeter, progressMeter } from '../../host/progress-meter';
import { withResources } from '../../host/resources';
import { openForReading } from '../../host/weight-inputs';
import { warningsOf } from '../../inputs/problems';
import { tensorsToRead } from '../../inputs/row-map';
import { inputName, type ReadTensor } from '../../inputs/stored-tensor';
import type { TensorRef } from '../../inputs/tensor-view';
import type { Plan } from '../../merge/plan/plan';
import { peakBytes, planInputs } from '../../merge/plan/plan-bytes';
import { AMALGAM_VERSION } from '../../merge/version';
import type { BackendKind } from '../../reports/backend';
import { type EvaluateReport, overTexts } from '../../reports/evaluate';
import { margin, meanLoss } from '../../reports/paired-error';
import { hubModel, writePlan } from '../write-plan';
import {
  type FitTools,
  fitBytes,
  fitRows,
  fittedParts,
  fitWork,
  landmarksOf,
  normsOf,
  pieceParts,
  secondsFor,
} from './fit';
import { type NewRows, transplanted } from './new-rows';
import { isFitted } from './options';
import type {
  PlanTransplantRequest,
  Quality,
  TransplantPlan,
  TransplantProgress,
  TransplantReport,
  TransplantRequest,
} from './report';
import { piecesOf } from './spelling';
import { planTransplant, type TokenTensor, type Transplant } from './transplant';
import { transplantCard } from './words';

type CopyPlan = (model: string) => Promise<Plan>;

/** Matrices of the donor that rows are fitted to, each once. */
function donorMatrices({ tensors }: Transplant): TokenTensor['donor'][] {
  return [...new Map(tensors.map(({ donor }) => [matrixKey(donor.tensor), donor])).values()];
}

const matrixKey = ({ file, key }: TensorRef) => `${file}\n${key}`;

/** What the report and the plan both say. */
function outlineOf(transplant: Transplant, request: PlanTransplantRequest) {
  const { model, donor, form } = request;
  const { plan, output, shared, special, fresh } = transplant;
  const landmarks = isFitted(form) ? landmarksOf(transplant, form).length : 0;
  const widths = isFitted(form) ? donorMatrices(transplant).map(({ tensor }) => tensor.shape[1] ?? 1) : [];
  const work = fitWork(form, fresh.length, landmarks, widths);
  const fitting = fitBytes(form, fresh.length, landmarks, Math.max(0, ...widths));
  return {
    work,
    outline: {
      ...{ model, donor, form, landmarks },
      rows: { before: transplant.model.rows, after: output.rows },
      tokens: { shared: shared.size, special, new: fresh.length },
      multiplyAdds: work,
      peakBytes: Math.max(fitting, peakBytes(plan.tensors)),
      notes: warningsOf(plan.problems),
    },
  };
}

/** Whether the donor's weights are read. */
const readsDonor = ({ form }: PlanTransplantRequest) => isFitted(form) || form.magnitude === 'donor';

/** Files of both models that are read. */
function inputsOf(transplant: Transplant, request: PlanTransplantRequest, models: OpenModels) {
  const { plan } = transplant;
  const fileOf = (folder: string, file: string) => models.file(folder, file).file;
  const needed = readsDonor(request) ? donorMatrices(transplant) : [];
  const donor = needed.flatMap(({ tensor, lowRank }) =>
    [tensor, ...(lowRank ? [lowRank.a, lowRank.b] : [])].flatMap(tensorsToRead),
  );
  const own = planInputs(plan.tensors, fileOf);
  const more = donor.map(({ folder, file }) => ({
    ...{ folder, file, readBytes: 0 },
    byteLength: fileOf(folder, file).byteLength,
  }));
  return [...new Map([...own, ...more].map((one) => [inputName(one.folder, one.file), one])).values()];
}

/** What will be done, and how long it takes. @throws AmalgamError as {@link planTransplant} */
async function runPlanTransplant(
  request: PlanTransplantRequest,
  models: OpenModels,
  signal: AbortSignal,
  _onProgress: (progress: TransplantProgress) => void,
): Promise<TransplantPlan> {
  const transplant = await planTransplant(request, request.form, models);
  const { work, outline } = outlineOf(transplant, request);
  return withResources(async ({ keep }) => {
    const engine = keep((await openEvaluationBackends(request.engine, 1, work))[0]);
    return {
      ...outline,
      seconds: isFitted(request.form) ? await secondsFor(work, engine, signal) : 0,
      bytesToRead: inputsOf(transplant, request, models).reduce((sum, { byteLength }) => sum + byteLength, 0),
      bytesToWrite: transplant.plan.bytesToWrite,
    };
  });
}

/**
 * Makes the rows and writes the model. Whatever fails, nothing is left at the destination.
 *
 * @param copyPlan the plan of copying a model
 * @throws AmalgamError as {@link planTransplant}, and `TokenizerUnsupported`, `TextEmpty`, `TextTooShort`,
 *   `ArchitectureUnsupported`, `NonFinite`, `Canceled`, and what sources, engine and destination throw
 */
async function runTransplant(
  request: TransplantRequest,
  models: OpenModels,
  signal: AbortSignal,
  onProgress: (progress: TransplantProgress) => void,
  copyPlan: CopyPlan,
): Promise<TransplantReport> {
  const begin = performance.now();
  const transplant = await planTransplant(request, request.form, models);
  const { work, outline } = outlineOf(transplant, request);
  const { texts = [] } = request;
  const before = await copyPlan(request.model);
  const inputs = inputsOf(transplant, request, models);
  const { engine, adapter, plan, ...found } = await withResources(async ({ keep }) => {
    const backend: Backend = keep((await openEvaluationBackends(request.engine, 1, work))[0]);
    const meter = progressMeter<TransplantProgress>(onProgress, () => backend);
    const { read } = keep(await openForReading({ inputs }, models, meter, signal));
    const begun = performance.now();
    const tools = { engine: backend, read, meter, signal };
    const made = await makeRows(transplant, request, before, models, tools);
    const fitSeconds = (performance.now() - begun) / 1000;
    const measure = (of: Plan, name: string) => {
      meter.begin('evaluating', 0);
      return measureQuality(of, texts, models, backend.kind, signal, (done, total) =>
        meter.advance(0, `${name}, ${Math.floor((100 * done) / total)} %`),
      );
    };
    const quality =
      texts.length === 0
        ? null
        : { before: await measure(before, 'before'), after: await measure(made.plan, 'after') };
    return { ...made, engine: backend.kind, adapter: backend.adapter, fitSeconds, quality };
  });
  const report = { ...outline, engine, adapter, version: AMALGAM_VERSION, ...found };
  const { model, donor, form } = request;
  const card = transplantCard(report, hubModel(before, models));
  const written = await writePlan(
    { ...plan, inputs },
    { key: 'transplant', made: { model, donor, form }, card },
    { ...request, engine },
    models,
    signal,
    (progress) => onProgress({ ...progress, finished: [] }),
  );
  return { ...report, ...written, seconds: (performance.now() - begin) / 1000 };
}

interface MakingTools {
  engine: Backend;
  read: ReadTensor;
  meter: ProgressMeter<TransplantProgress>;
  signal: AbortSignal;
}

/** The plan with its rows made. */
async function makeRows(
  transplant: Transplant,
  request: TransplantRequest,
  before: Plan,
  models: OpenModels,
  { engine, read, meter, signal }: MakingTools,
): Promise<{ plan: Plan; left: TransplantReport['left'] }> {
  const { plan, tensors, fresh, spelling, model } = transplant;
  const { form } = request;
  const left: TransplantReport['left'] = [];
  const fitted = new Map<string, Awaited<ReturnType<typeof fitRows>>>();
  const tools: FitTools = {
    ...{ queue: createQueue(engine), read, signal },
    onBytes: (bytes) => meter.advance(bytes, 'new tokens'),
  };
  if (isFitted(form)) {
    const widths = donorMatrices(transplant).map(({ tensor }) => tensor.shape[1] ?? 1);
    meter.begin('fitting', 4 * fresh.length * widths.reduce((a, b) => a + b, 0));
    for (const donor of donorMatrices(transplant)) {
      fitted.set(matrixKey(donor.tensor), await fitRows(donor, transplant, form, tools));
    }
  }
  const pieces = form.way === 'subwords' && tensors.length > 0 ? await allPieces() : [];
  const partsOf = (tensor: TokenTensor): NewRows['parts'] => {
    if (form.way === 'subwords') return pieceParts(pieces, form, tensor.isHead);
    if (!isFitted(form)) return () => (form.way === 'zero' ? { rows: [], weights: [] } : undefined);
    const found = fitted.get(matrixKey(tensor.donor.tensor))!;
    const mean = found.combinations.reduce((sum, one) => sum + one.left, 0) / Math.max(1, fresh.length);
    left.push({ tensor: tensor.planned.name, mean });
    return fittedParts(found, transplant, form);
  };
  const replaced = new Map<string, Plan['tensors'][number]>();
  for (const tensor of tensors) {
    const rows = { parts: partsOf(tensor), norm: await normsOf(tensor, transplant, form, read) };
    replaced.set(tensor.planned.name, transplanted(tensor, transplant, rows));
  }
  return { plan: { ...plan, tensors: plan.tensors.map((one) => replaced.get(one.name) ?? one) }, left };

  async function allPieces() {
    const tokenizer = await plannedTokenizer(before, models, model.rows, signal);
    const unknown = spelling.model.roles.get('unk_token');
    const bytes = fresh.map(({ token }) => spelling.donor.bytes.get(token) ?? '');
    return piecesOf(bytes, spelling.model, model.ids, unknown, tokenizer.encodeAll);
  }
}

/** The calls of the tool. */
export const jobs = { planTransplant: runPlanTransplant, transplant: runTransplant } as const;

// What a planned model makes of texts, in bits per byte: comparable across tokenizers.

/** @throws AmalgamError `ArchitectureUnsupported`, `TextEmpty`, `TextTooShort`, and what sources, engine and tokenizer throw */
async function measureQuality(
  plan: Plan,
  texts: readonly string[],
  models: OpenModels,
  engine: BackendKind,
  signal: AbortSignal,
  onProgress: (done: number, total: number) => void,
): Promise<Quality> {
  const running = await openRunningModel({
    ...{ plan, models, engine, exact: true, signal },
    onProgress: () => undefined,
  });
  try {
    const tokenizer = await running.tokenizer();
    const inputs = [];
    for (const text of texts) inputs.push(await tokenize(text, tokenizer, running.chatTemplate));
    const reports = await evaluateTexts(running.runner, inputs, DEFAULT_PROTOCOL, {
      signal,
      onProgress: ({ tokensDone, tokens: all }) => onProgress(tokensDone, all),
    });
    return qualityOf(
      reports,
      inputs.map(({ bytes = 0 }) => bytes),
    );
  } finally {
    running.close();
  }
}

/** Bits per byte over all texts: the errors of their losses add up as squares. */
export function qualityOf(reports: readonly EvaluateReport[], bytes: readonly number[]): Quality {
  const perByte = 1 / Math.LN2 / bytes.reduce((a, b) => a + b, 0);
  const bits = reports.reduce((sum, { meanNll, tokens }) => sum + meanNll * tokens, 0) * perByte;
  const margins = reports.map(({ blocks = [], tokens }) => {
    const own = margin(meanLoss([blocks]));
    return own === null ? Number.NaN : own * tokens * perByte;
  });
  const width = Math.hypot(...margins);
  const { perplexity, tokens } = overTexts(reports);
  return { bitsPerByte: bits, margin: Number.isNaN(width) ? null : width, perplexity, tokens };
}
