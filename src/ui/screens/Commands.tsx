import type { Recipe } from '../../formats/recipe';
import { CopyButton } from '../parts/CopyButton';
import { amalgamCommand, mergekitCommand } from '../state/mergekit-command';

/** The same merge from a terminal: mergekit's command, where it has the method, and ours. */
export function Commands({ recipe, name, refused }: { recipe: Recipe; name: string; refused: boolean }) {
  const lines = [
    ...(refused ? [] : [{ label: 'mergekit', command: mergekitCommand(recipe, name) }]),
    { label: 'Amalgam', command: amalgamCommand(name) },
  ];
  return (
    <dl className="commands">
      {lines.map(({ label, command }) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd className="row">
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a long line scrolls, also by keyboard. */}
            <code className="formula" tabIndex={0}>
              {command}
            </code>
            <CopyButton text={() => command} />
          </dd>
        </div>
      ))}
    </dl>
  );
}
