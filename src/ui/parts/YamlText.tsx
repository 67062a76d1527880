import '../styles/recipe-edit.css';
import { type ReactNode, useId } from 'react';
import type { RecipeProblem } from '../../formats/recipe-yaml-nodes';
import { Message } from './Message';

interface YamlTextProps {
  label: string;
  text: string;
  problems: readonly RecipeProblem[];
  /** Lines with a warning. */
  doubtful?: ReadonlySet<number>;
  onChange(text: string): void;
  /** Further messages below. */
  children?: ReactNode;
}

/** YAML to edit, its lines numbered; below it the first problems. */
export function YamlText({ label, text, problems, doubtful, onChange, children }: YamlTextProps) {
  const listId = useId();
  const sorted = [...problems].sort((a, b) => a.line - b.line);
  const wrong = new Set(sorted.map((p) => p.line));
  const lines = text.split('\n');
  return (
    <>
      <div className="scroll recipe-text-page" data-invalid={problems.length > 0 || undefined}>
        <ol className="recipe-text-lines" aria-hidden="true">
          {lines.map((_, i) => (
            <li
              // biome-ignore lint/suspicious/noArrayIndexKey: a line is its number.
              key={i}
              data-tone={wrong.has(i + 1) ? 'bad' : doubtful?.has(i + 1) ? 'warn' : undefined}
            >
              {i + 1}
            </li>
          ))}
        </ol>
        <textarea
          className="wide"
          aria-label={label}
          aria-invalid={problems.length > 0}
          aria-describedby={listId}
          rows={lines.length}
          wrap="off"
          value={text}
          spellCheck={false}
          autoComplete="off"
          autoCapitalize="off"
          onChange={(event) => onChange(event.target.value)}
        />
      </div>
      <div id={listId} className="stack" aria-live="polite">
        {sorted.slice(0, 3).map(({ line, column, message, hint }) => (
          <Message
            key={`${line}:${column}:${message}`}
            tone="error"
            title={`Line ${line}, column ${column}: ${message}`}
            hint={hint}
          />
        ))}
        {children}
      </div>
    </>
  );
}
