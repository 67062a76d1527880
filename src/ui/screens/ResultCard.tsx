import { formatBytes, formatCounted, formatPercent, formatSetting } from '../../formats/quantity';
import { awaitsMerge } from '../../merge/prediction/predicted-report';
import type { TensorReport } from '../../reports/job';
import { changing } from '../charts/measured';
import { saveFile } from '../local/file-download';
import { Button } from '../parts/Button';
import { CloseIcon } from '../parts/icons';
import { ZipButton } from '../parts/ZipButton';
import { tryMerge } from '../state/generation';
import { whyNotWrite } from '../state/measure';
import type { FinishedRun } from '../state/runs';
import { notifyError, setView } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';

/** The merge that has just ended: one sentence of what it did, and what can be done with it. */
export function ResultCard({ run, onClose }: { run: FinishedRun; onClose(): void }) {
  const studio = useStudio();
  const whyNotTry = useStudioState(whyNotWrite);
  const { destination, outputFiles } = run;
  const inFolder = destination.kind === 'folder';
  const fileOf = (name: string) => studio.worker.outputFile(destination.name, name);
  const gguf = inFolder ? undefined : outputFiles.find((name) => name.endsWith('.gguf'));
  const showFiles = (filesAt: 'gguf' | 'push' | null) => setView(studio, { tab: 'files', filesAt });
  const saveGguf = (name: string) =>
    fileOf(name).then(
      (file) => saveFile(file, name),
      (thrown: unknown) => notifyError(studio, thrown),
    );
  return (
    <section className="result-card" aria-label="Result of the merge">
      <p role="status">{resultWords(run)}</p>
      <div className="row tight">
        {inFolder ? (
          <Button onClick={() => showFiles(null)}>Show files</Button>
        ) : (
          <ZipButton
            name={destination.name}
            label="Save files"
            files={() => Promise.all(outputFiles.map(async (name) => ({ name, file: await fileOf(name) })))}
            why={null}
          />
        )}
        <Button
          tip={gguf ? `Saves ${gguf}` : 'Choose a GGUF type, then merge again'}
          onClick={() => (gguf ? void saveGguf(gguf) : showFiles('gguf'))}
        >
          {gguf ? 'GGUF' : 'GGUF…'}
        </Button>
        <Button onClick={() => showFiles('push')}>Push…</Button>
        <Button
          tip="Base, contributors and merge answer the same prompt"
          why={whyNotTry}
          onClick={() => void tryMerge(studio)}
        >
          Try
        </Button>
        <Button variant="quiet" iconOnly aria-label="Close the result" onClick={onClose}>
          <CloseIcon />
        </Button>
      </div>
    </section>
  );
}

/**
 * A merge in one sentence: of *Find the best* the share of each contributor's gain on held-out text, else the share of each
 * change's energy that the merge counted where it left any out; without either, its size. Nothing that was not measured.
 */
export function resultWords({ report, contributors, methodTitle, planned }: FinishedRun): string {
  const label = (id: string) => contributors.find((c) => c.id === id)?.label ?? id;
  const bytes = report.shards.reduce((sum, { bytes }) => sum + bytes, 0);
  const size = `${formatCounted(planned.length, 'tensor')}, ${formatBytes(bytes)}`;
  const found = report.recommended;
  if (found) {
    const { label: title, lambda } = found.rows.find(({ id }) => id === found.best)!;
    const kept = found.kept.map((share, i) => {
      const name = label(found.texts[i]!.name);
      return share === null ? `no gain of ${name}` : `${formatPercent(share)} of ${name}’s`;
    });
    const merges = found.rows.filter(({ target }) => 'recipe' in target);
    const best = `${title}${lambda === null ? '' : `, λ ${formatSetting(lambda, 0.01)},`} is the best of ${formatCounted(merges.length, 'merge')}`;
    return kept.length === 0
      ? `${best}.`
      : `${best}: of the gains on held-out text it keeps ${joined(kept)}.`;
  }
  const totals = contributorTotals(
    report.tensors,
    contributors.map((c) => c.id),
  );
  const kept = totals.flatMap(({ id, keptEnergy, elements }) =>
    keptEnergy === null || elements === 0 ? [] : [`${formatPercent(keptEnergy)} of ${label(id)}’s`],
  );
  const trims = totals.some((of) => of.elements > 0 && of.keptEnergy !== null && of.keptEnergy < 1);
  if (!trims) return `${methodTitle}: ${size}.`;
  return `${methodTitle} keeps ${joined(kept)} change, by energy.`;
}

function joined(words: readonly string[]): string {
  return words.length < 2 ? words.join() : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}

// The whole model in a few numbers, from the reports of its tensors. Pure.

interface ContributorTotals {
  id: string;
  /** Tensors it changes. */
  tensors: number;
  elements: number;
  /** Share of ‖τ‖² kept by its selection, in [0, 1]; null where it is not measured, or not yet. */
  keptEnergy: number | null;
}

/** Sums over all tensors a contributor changes; norms add as squares. */
export function contributorTotals(
  reports: readonly TensorReport[],
  ids: readonly string[],
): ContributorTotals[] {
  return ids.map((id) => {
    let tensors = 0;
    let elements = 0;
    let square = 0;
    let keptSquare = 0;
    for (const report of reports) {
      const c = changing(report).find((c) => c.id === id);
      if (!c) continue;
      tensors += 1;
      elements += report.elements;
      square += c.norm ** 2;
      keptSquare += c.keptNorm === null || awaitsMerge(report) ? Number.NaN : c.keptNorm ** 2;
    }
    const keptEnergy = Number.isNaN(keptSquare) ? null : square > 0 ? keptSquare / square : 0;
    return { id, tensors, elements, keptEnergy };
  });
}
