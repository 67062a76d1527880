import { useEffect, useId, useMemo, useRef, useState } from 'react';
import { metrics } from '../charts/metrics';
import { DialogFrame } from '../parts/DialogFrame';
import { type Action, allActions, keysText, perform } from '../state/actions';
import { type StudioState, setView } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';

const ROWS: readonly Action[] = [
  ...allActions,
  ...metrics.map(
    ({ id, label }): Action => ({
      name: `Show ${label} of the layers`,
      perform: (studio) => setView(studio, { tab: 'layers', metric: id }),
    }),
  ),
];

/** Every action by name, with its keys or why it cannot be done now. */
export function Palette() {
  const studio = useStudio();
  const state = useStudioState((s) => s);
  const [words, setWords] = useState('');
  const [at, setAt] = useState(0);
  const listId = useId();
  const list = useRef<HTMLDivElement>(null);
  const found = useMemo(() => matching(words, state), [words, state]);
  useEffect(() => {
    list.current?.children[at]?.scrollIntoView({ block: 'nearest' });
  }, [at]);
  const choose = (action: Action | undefined) => {
    if (!action || action.whyNot?.(state)) return;
    setView(studio, { dialog: null });
    void perform(studio, action);
  };
  return (
    <DialogFrame title="Actions and keys" about="Type what you want to do.">
      <div className="grid head-rows tight scroll palette">
        <input
          className="field"
          type="text"
          role="combobox"
          aria-label="Action"
          aria-expanded="true"
          aria-controls={listId}
          aria-activedescendant={found[at] ? `${listId}-${at}` : undefined}
          // biome-ignore lint/a11y/noAutofocus: the dialog was opened to type here.
          autoFocus
          autoComplete="off"
          spellCheck={false}
          value={words}
          onChange={({ target }) => {
            setWords(target.value);
            setAt(0);
          }}
          onKeyDown={(event) => {
            const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
            if (step !== undefined) setAt(Math.min(found.length - 1, Math.max(0, at + step)));
            else if (event.key === 'Enter') choose(found[at]);
            else return;
            event.preventDefault();
          }}
        />
        <div ref={list} id={listId} role="listbox" aria-label="Actions" className="scroll palette-list">
          {found.map((action, i) => {
            const why = action.whyNot?.(state) ?? null;
            return (
              // biome-ignore lint/a11y/useKeyWithClickEvents: the field above has the keys.
              // biome-ignore lint/a11y/useFocusableInteractive: so it has the focus.
              <div
                key={action.name}
                id={`${listId}-${i}`}
                role="option"
                className="row spread loose"
                aria-selected={i === at}
                aria-disabled={why !== null}
                onClick={() => choose(action)}
                onPointerMove={() => setAt(i)}
              >
                <span>{action.name}</span>
                <span className="small quiet grow">{why}</span>
                <kbd>{keysText(action)}</kbd>
              </div>
            );
          })}
        </div>
        {found.length === 0 ? <p className="small quiet">Nothing is called so.</p> : null}
      </div>
    </DialogFrame>
  );
}

/** Actions that have every word in their name: those that can be done now first, of these the ones that begin with it. */
function matching(words: string, state: StudioState): readonly Action[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const rank = ({ name, whyNot }: Action) =>
    (whyNot?.(state) ? 2 : 0) + (name.toLowerCase().startsWith(wanted[0] ?? '') ? 0 : 1);
  return ROWS.filter(({ name }) => wanted.every((word) => name.toLowerCase().includes(word))).sort(
    (a, b) => rank(a) - rank(b),
  );
}
