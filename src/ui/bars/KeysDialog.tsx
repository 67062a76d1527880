import { DialogFrame } from '../parts/DialogFrame';

const KEYS: readonly [keys: string, what: string][] = [
  ['Ctrl or ⌘ Enter', 'Merge; in a prompt, generate'],
  ['Ctrl or ⌘ Z', 'Undo an edit of the recipe'],
  ['Ctrl or ⌘ Shift Z', 'Redo it'],
  ['Tab, first in the page', 'Skip to the views, or to Merge'],
  ['← →', 'Next view, on the row of tabs; next cell, tensor or point, in charts'],
  ['↑ ↓', 'Next row or method; a step of a slider or a point (with Shift: ten)'],
  ['Space, then ↑ ↓', 'Move a contributor, on its grip'],
  ['Insert, Delete', 'Add points to a curve, remove one'],
  ['Home, End', 'First, last'],
  ['Esc', 'Close a dialog or menu'],
  ['?', 'Show this list'],
];

/** Every key of the page. */
export function KeysDialog({ onClose }: { onClose(): void }) {
  return (
    <DialogFrame
      title="Keyboard shortcuts"
      about="What the keyboard does here."
      foot={null}
      onClose={onClose}
    >
      <dl className="keys">
        {KEYS.map(([keys, what]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </DialogFrame>
  );
}
