import { useId, useState } from 'react';
import { formatRecipe, parseRecipe } from '../../formats/recipe-yaml';
import { Button } from '../parts/Button';
import { Message } from '../parts/Message';
import { buildRecipe } from '../state/recipe-build';
import { openRecipe } from '../state/recipe-open';
import { methodOf } from '../state/studio';
import { useFacts, useStudio } from '../studio-context';

/** A recipe as text, to paste, write or open from a file. What is wrong is told with its line, and then nothing opens. */
export function RecipeText() {
  const studio = useStudio();
  const recipe = useFacts((s) => s.recipe);
  const models = useFacts((s) => s.models);
  const [text, setText] = useState(() => formatRecipe(buildRecipe(recipe, models, methodOf(recipe))));
  const listId = useId();
  const parsed = parseRecipe(text);
  const problems = [...parsed.problems].sort((a, b) => a.line - b.line);
  const first = problems[0];
  return (
    <div className="recipe-text">
      <textarea
        className="field mono"
        aria-label="Recipe as YAML"
        aria-invalid={first !== undefined}
        aria-describedby={listId}
        value={text}
        spellCheck={false}
        autoComplete="off"
        onChange={(event) => setText(event.target.value)}
      />
      <div className="row wrap">
        <Button
          variant="primary"
          why={first ? `Line ${first.line}: ${first.message}` : null}
          onClick={() => parsed.recipe && openRecipe(studio, parsed.recipe)}
        >
          Use this recipe
        </Button>
        <label className="button file-button">
          Open a file…
          <input
            type="file"
            className="visually-hidden"
            accept=".yml,.yaml,text/yaml"
            onChange={(event) => {
              const file = event.target.files?.[0];
              if (file) void file.text().then(setText);
            }}
          />
        </label>
      </div>
      <div id={listId} className="stack">
        {problems.slice(0, 5).map(({ line, column, message, hint }) => (
          <Message
            key={`${line}:${column}:${message}`}
            tone="error"
            title={`Line ${line}, column ${column}: ${message}`}
            hint={hint}
          />
        ))}
      </div>
    </div>
  );
}
