import { useShallow } from 'zustand/react/shallow';
import { Message } from '../parts/Message';
import type { AddTarget } from '../state/studio-state';
import { useStudioState } from '../studio-context';
import { ModelList } from './ModelList';

/** The family that ships inside. */
export function SampleSource({ target, onDone }: { target: AddTarget; onDone(): void }) {
  const models = useStudioState(useShallow((s) => s.models.filter((m) => m.origin === 'sample')));
  const opening = useStudioState((s) => s.opening.length > 0);
  if (models.length === 0) {
    return opening ? (
      <p className="quiet">Opening the sample…</p>
    ) : (
      <Message
        tone="warning"
        title="The sample could not be opened."
        hint="Reload the page, or open models of your own."
      />
    );
  }
  return (
    <>
      <p className="quiet">
        A very small family made for trying things out: one base, two adapters and a fine-tune, each trained
        on one trade. It merges in a moment.
      </p>
      <ModelList label="Sample models" models={models} target={target} onDone={onDone} />
    </>
  );
}
