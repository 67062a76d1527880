import { formatBytes, formatSeconds } from '../format/quantity';
import { Button } from '../parts/Button';
import { TrashIcon } from '../parts/icons';
import { Section } from '../parts/Section';
import { forgetRun, pinRun, reopenRun, whyNotReopen } from '../state/past-runs';
import type { KeptRun } from '../state/run-facts';
import { useFacts, useStudio } from '../studio-context';
import { RunExport } from './RunExport';

/** Merges of before, with their recipes, numbers and hashes. */
export function RunHistory() {
  const runs = useFacts((s) => s.pastRuns);
  if (runs.length === 0) return null;
  return (
    <Section
      title="History"
      aside={<span className="small quiet">kept in this browser: recipes and reports, no weights</span>}
    >
      <ul className="past-runs" aria-label="Merges of before">
        {runs.map((run) => (
          <PastRun key={run.id} run={run} />
        ))}
      </ul>
    </Section>
  );
}

function PastRun({ run }: { run: KeptRun }) {
  const studio = useStudio();
  const why = useFacts(whyNotReopen);
  const { report, title, methodTitle } = run;
  const when = new Date(run.startedAt).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' });
  const bytes = report.shards.reduce((sum, s) => sum + s.bytes, 0);
  return (
    <li className="past-run">
      <div className="past-run-head">
        <strong className="truncate">{title}</strong>
        <span className="small quiet">
          {methodTitle} · {when} · {formatSeconds(report.seconds)} · {formatBytes(bytes)} ·{' '}
          {report.engine === 'webgpu' ? 'WebGPU' : 'CPU'}
        </span>
      </div>
      <div className="row">
        <Button
          tip="Its recipe into the panel, its charts into Layers"
          aria-label={`Open ${title}, ${when}`}
          why={why}
          onClick={() => void reopenRun(studio, run)}
        >
          Open
        </Button>
        <Button
          tip="Hold it in Layers, to see another setting or merge beside it"
          aria-label={`Pin as A: ${title}, ${when}`}
          onClick={() => pinRun(studio, run)}
        >
          Pin as A
        </Button>
        <RunExport run={run} />
        <Button
          variant="quiet"
          iconOnly
          tip="Forget this merge; files it wrote stay"
          aria-label={`Forget ${title}, ${when}`}
          onClick={() => void forgetRun(studio, run)}
        >
          <TrashIcon />
        </Button>
      </div>
      <details className="small">
        <summary>Hashes</summary>
        <ul className="past-run-hashes">
          <Hash label="recipe" sha256={report.recipeSha256} />
          {report.shards.map((shard) => (
            <Hash key={shard.file} label={shard.file} sha256={shard.sha256} />
          ))}
        </ul>
      </details>
    </li>
  );
}

function Hash({ label, sha256 }: { label: string; sha256: string }) {
  return (
    <li>
      <span>{label}</span> <code>{sha256}</code>
    </li>
  );
}
