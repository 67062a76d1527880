import { formatClock, formatCount, formatRate } from '../format/quantity';
import {
  cancelTool,
  TOOL_WORDS,
  type ToolJob,
  type ToolKind,
  type ToolProgress,
  toolShare,
} from '../state/tool-job';
import { useFacts, useStudio } from '../studio-context';
import { Button } from './Button';

const STAGES: Readonly<Record<ToolProgress['stage'], string>> = {
  downloading: 'downloading',
  comparing: 'comparing',
  extracting: 'extracting',
  checking: 'checking the adapter',
  measuring: 'running the model',
  searching: 'searching',
  evaluating: 'measuring perplexity',
  hashing: 'hashing',
  writing: 'writing',
  sending: 'sending',
  committing: 'committing',
};

/** What a tool is at, how fast, how long it will take, and the way to stop it. Shown for these kinds of jobs only. */
export function ToolBar({ kinds }: { kinds: readonly ToolKind[] }) {
  const tool = useFacts((s) => s.tool);
  const shown = tool && kinds.includes(tool.kind) ? tool : null;
  return (
    <>
      {shown ? <Bar tool={shown} /> : null}
      {/* single numbers would be too much to hear: that it works, and at what */}
      <span className="visually-hidden" role="status">
        {shown
          ? `${TOOL_WORDS[shown.kind].title}: ${shown.progress ? STAGES[shown.progress.stage] : 'starting'}.`
          : ''}
      </span>
    </>
  );
}

function Bar({ tool }: { tool: ToolJob }) {
  const studio = useStudio();
  const p = tool.progress;
  const { title } = TOOL_WORDS[tool.kind];
  const share = toolShare(tool);
  return (
    <div className="tool-bar">
      <div
        className="progress"
        role="progressbar"
        aria-label={title}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(share * 100)}
      >
        <div className="progress-fill" style={{ width: `${share * 100}%` }} />
      </div>
      <p className="small tool-line">
        <span className="truncate tool-item">
          {tool.cancelling ? 'Cancelling…' : p ? p.item || STAGES[p.stage] : 'Starting…'}
        </span>
        {p && !tool.cancelling ? (
          <>
            {p.item ? <span className="quiet">{STAGES[p.stage]}</span> : null}
            {p.tensors > 0 ? (
              <span className="quiet">
                {formatCount(p.tensorsDone)} of {formatCount(p.tensors)}
              </span>
            ) : null}
            {p.bytes > 0 ? <span className="quiet">{formatRate(p.bytesPerSecond)}</span> : null}
            <span className="spacer" />
            <span className="quiet">
              {p.secondsLeft === null ? '' : `${formatClock(p.secondsLeft)} left`}
            </span>
          </>
        ) : null}
      </p>
      <Button why={tool.cancelling ? 'Cancelling…' : null} onClick={() => void cancelTool(studio)}>
        Stop
      </Button>
    </div>
  );
}
