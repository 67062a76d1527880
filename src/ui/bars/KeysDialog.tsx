import { DialogFrame } from '../parts/DialogFrame';

const KEYS: readonly [keys: string, what: string][] = [
  ['Ctrl or ⌘ Enter', 'Merge; in a prompt, generate'],
  ['Ctrl or ⌘ Z', 'Undo an edit of the recipe'],
  ['Ctrl or ⌘ Shift Z', 'Redo it'],
  ['Tab, first in the page', 'Skip to the views, or to Merge'],
  ['← →', 'Another view, where the views have the focus; another cell, tensor or point in charts'],
  ['↑ ↓', 'Another row or method; with a slider or a point, a step (Shift: ten)'],
  ['Space, then ↑ ↓', 'On the grip of a contributor: move it'],
  ['Insert, Delete', 'On a curve: more points, one point fewer'],
  ['Home, End', 'The first, the last'],
  ['Esc', 'Close what is open'],
  ['?', 'This list'],
];

/** Every key of the page. */
export function KeysDialog({ onClose }: { onClose(): void }) {
  return (
    <DialogFrame title="Keys" about="What the keyboard does here." foot={null} onClose={onClose}>
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
