/** What a planned model makes of texts, in bits per byte: comparable across tokenizers. */
import { tokenize } from '../../evaluate/job';
import { DEFAULT_PROTOCOL, evaluateTexts } from '../../evaluate/perplexity';
import { openRunningModel } from '../../evaluate/running-model';
import type { OpenModels } from '../../host/models';
import type { Plan } from '../../merge/plan/plan';
import type { BackendKind } from '../../reports/backend';
import { type EvaluateReport, overTexts } from '../../reports/evaluate';
import { margin, meanLoss } from '../../reports/paired-error';
import type { Quality } from './report';

/** @throws AmalgamError `ArchitectureUnsupported`, `TextEmpty`, `TextTooShort`, and what sources, engine and tokenizer throw */
export async function measureQuality(
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
