import { useId, useState } from 'react';
import { BUILT_IN_TEMPLATES, canBeJinja } from '../../formats/chat-template';
import { ADAPTER_GGUF_TYPES, GGUF_TYPES, usesImportance } from '../../formats/gguf-type';
import { convertOptions } from '../../tools/convert/options';
import { Button, TextBlock } from '../parts/Button';
import { LabeledSelect, named } from '../parts/fields';
import { useAttempt } from '../parts/hooks';
import { ErrorCard, Problem } from '../parts/Message';
import { OptionsForm } from '../parts/OptionsForm';
import { TextParameter } from '../recipe/TextParameter';
import { buildRecipe } from '../state/built-recipe';
import type { RecipeState } from '../state/recipe-state';
import { ggufOf } from '../state/recipe-state';
import { editRecipe, methodOf } from '../state/studio';
import { useParts, useStudio, useStudioState } from '../studio-context';

const NAMES = Object.keys(BUILT_IN_TEMPLATES);
/** The choice that opens a field; no template is called so. */
const WRITTEN = 'written out';

/** Which chat template the output gets, and what it makes of a conversation. */
export function ChatTemplateForm() {
  const studio = useStudio();
  const chosen = useStudioState((s) => s.recipe.chatTemplate);
  const isAdapter = useStudioState((s) => s.recipe.output === 'adapter');
  const written = chosen !== null && chosen !== 'auto' && !NAMES.includes(chosen);
  const [writing, setWriting] = useState(false);
  const [refused, setRefused] = useState(false);
  if (isAdapter) return null;
  const take = (chatTemplate: string | null) => editRecipe(studio, (r) => ({ ...r, chatTemplate }));
  return (
    <>
      <LabeledSelect
        label="Chat template"
        value={written || writing ? WRITTEN : (chosen ?? '')}
        options={[
          { value: '', label: 'as the tokenizer has it' },
          { value: 'auto', label: 'auto: the one most models have' },
          ...named(NAMES),
          { value: WRITTEN, label: `${WRITTEN}…` },
        ]}
        onChange={(value) => {
          setWriting(value === WRITTEN);
          if (value !== WRITTEN) take(value === '' ? null : value);
        }}
      />
      {written || writing ? (
        <textarea
          className="field mono small"
          aria-label="Chat template in Jinja"
          placeholder="{% for message in messages %}{{ message['role'] + ': ' + message['content'] }}{% endfor %}"
          rows={4}
          spellCheck={false}
          defaultValue={written ? chosen : ''}
          aria-invalid={refused}
          onBlur={({ target: { value } }) => {
            const empty = value.trim() === '';
            setRefused(!empty && !canBeJinja(value));
            if (empty || canBeJinja(value)) take(empty ? null : value);
          }}
        />
      ) : null}
      <Problem>
        {refused &&
          (written || writing) &&
          'This is no Jinja template: write at least 20 characters with a brace among them.'}
      </Problem>
      <ChatPreview />
    </>
  );
}

/** A conversation as the output will read it. */
export function ChatPreview() {
  const studio = useStudio();
  const { recipe, models } = useParts('recipe', 'models');
  const clean = useStudioState((s) => s.plan.report?.clean ?? false);
  // of the recipe that it was asked for; null where the output has no template
  const [shown, setShown] = useState<{ of: RecipeState; text: string | null }>();
  const { working, error, attempt } = useAttempt();
  const show = () =>
    attempt('read', async (signal) => {
      const text = await studio.worker.chatPreview(buildRecipe(recipe, models, methodOf(recipe)), signal);
      setShown({ of: recipe, text });
    });
  const why = working ? 'Reading the template…' : clean ? null : 'The plan says what is missing first.';
  return (
    <div className="stack chat-preview">
      <Button variant="quiet" why={why} onClick={() => void show()}>
        {working ? 'Reading…' : 'Preview a conversation'}
      </Button>
      {error ? <ErrorCard error={error} /> : null}
      {shown?.of !== recipe ? null : shown.text === null ? (
        <p className="small quiet" role="status">
          The output gets no chat template: its tokenizer’s model has none.
        </p>
      ) : (
        <TextBlock label="What the merged model reads before it answers" text={shown.text} />
      )}
    </div>
  );
}

/** As the calibration of a model has it. */
const SELF = 'self';

interface OutputOptionsProps {
  names: readonly (keyof typeof convertOptions)[];
}

/** Fields of the output that a conversion has too. */
export function OutputOptions({ names }: OutputOptionsProps) {
  const studio = useStudio();
  const recipe = useStudioState((s) => s.recipe);
  const { outDtype, output, ggufOnly, shardBytes } = recipe;
  const types = output === 'adapter' ? ADAPTER_GGUF_TYPES : GGUF_TYPES;
  const gguf = { ...convertOptions.gguf, values: ['none', ...types] } as const;
  return (
    <OptionsForm
      options={{ ...convertOptions, gguf }}
      values={{ dtype: outDtype ?? 'same', gguf: ggufOf(recipe) ?? 'none', ggufOnly, shardBytes }}
      names={names}
      onChange={({ dtype, gguf: type, ...change }) =>
        editRecipe(studio, (r) => ({
          ...{ ...r, ...change },
          ...(dtype && { outDtype: dtype === 'same' ? null : dtype }),
          ...(type === 'none' && { gguf: null, ggufOnly: false }),
          ...(type && type !== 'none' && { gguf: type }),
        }))
      }
    />
  );
}

/** Whether the result is also written for llama.cpp, in which type, and what weighs its columns. */
export function GgufForm() {
  const studio = useStudio();
  const recipe = useStudioState((s) => s.recipe);
  const gguf = ggufOf(recipe);
  const helpId = useId();
  return (
    <>
      <OutputOptions names={['gguf', 'ggufOnly']} />
      {gguf !== null && usesImportance(gguf) ? (
        <div className="labeled">
          <span>Importance matrix</span>
          <TextParameter
            label="Text for the importance matrix"
            none="nothing, or what its models are calibrated on"
            self={SELF}
            helpId={helpId}
            value={recipe.imatrix ?? ''}
            onChange={(text) => editRecipe(studio, (r) => ({ ...r, imatrix: text === '' ? null : text }))}
          />
        </div>
      ) : null}
      {gguf === null ? null : (
        <p className="small quiet" id={helpId}>
          {recipe.output === 'adapter'
            ? 'One file for llama.cpp (--lora) and Ollama (ADAPTER), beside a GGUF of the base.'
            : 'One file for llama.cpp, LM Studio and Ollama, with the tokenizer inside.'}
        </p>
      )}
    </>
  );
}
