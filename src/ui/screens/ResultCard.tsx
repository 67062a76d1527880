import { formatBytes, formatCounted, formatPercent } from '../../formats/quantity';
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

/** A merge in one sentence: the share of each change's energy that it counted, else its size. */
export function resultWords({ report, contributors, methodTitle, planned }: FinishedRun): string {
  const label = (id: string) => contributors.find((c) => c.id === id)?.label ?? id;
  const bytes = report.shards.reduce((sum, { bytes }) => sum + bytes, 0);
  const size = `${formatCounted(planned.length, 'tensor')}, ${formatBytes(bytes)}`;
  const totals = contributorTotals(
    report.tensors,
    contributors.map((c) => c.id),
  );
  const kept = totals.flatMap(({ id, keptEnergy, elements }) =>
    keptEnergy === null || elements === 0 ? [] : [`${formatPercent(keptEnergy)} of ${label(id)}’s`],
  );
  if (kept.length === 0) return `${methodTitle}: ${size}.`;
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
