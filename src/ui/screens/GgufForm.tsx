import { useId } from 'react';
import { ADAPTER_GGUF_TYPES, GGUF_TYPES, type GgufType, usesImportance } from '../../formats/gguf-type';
import { named, Select } from '../parts/Select';
import { TextParameter } from '../recipe/TextParameter';
import { ggufOf } from '../state/recipe-state';
import { editRecipe } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';

/** As the calibration of a model has it. */
const SELF = 'self';

/** Whether the result is also written for llama.cpp, in which type, and what weighs its columns. */
export function GgufForm() {
  const studio = useStudio();
  const recipe = useStudioState((s) => s.recipe);
  const { ggufOnly, imatrix, output } = recipe;
  const gguf = ggufOf(recipe);
  const helpId = useId();
  const isAdapter = output === 'adapter';
  const types = isAdapter ? ADAPTER_GGUF_TYPES : GGUF_TYPES;
  return (
    <>
      <label className="labeled">
        <span>Also write GGUF</span>
        <Select<GgufType | ''>
          value={gguf ?? ''}
          options={[{ value: '', label: 'none' }, ...named(types)]}
          onChange={(value) => {
            const chosen = value === '' ? null : value;
            editRecipe(studio, (r) => ({ ...r, gguf: chosen, ggufOnly: chosen !== null && r.ggufOnly }));
          }}
        />
      </label>
      {gguf !== null && usesImportance(gguf) ? (
        <div className="labeled">
          <span>Importance matrix</span>
          <TextParameter
            label="Text for the importance matrix"
            none="nothing, or what its models are calibrated on"
            self={SELF}
            helpId={helpId}
            value={imatrix ?? ''}
            onChange={(text) => editRecipe(studio, (r) => ({ ...r, imatrix: text === '' ? null : text }))}
          />
        </div>
      ) : null}
      {gguf === null ? null : (
        <>
          <label className="row">
            <input
              type="checkbox"
              checked={ggufOnly}
              onChange={(event) => editRecipe(studio, (r) => ({ ...r, ggufOnly: event.target.checked }))}
            />
            <span>GGUF only, no safetensors</span>
          </label>
          <p className="small quiet" id={helpId}>
            {isAdapter
              ? 'One file for llama.cpp (--lora) and Ollama (ADAPTER), beside a GGUF of the base. A single LoRA with the method passthrough is converted as it is.'
              : 'One file for llama.cpp, LM Studio and Ollama, with the tokenizer inside. A single model with the method passthrough is converted as it is.'}
            {usesImportance(gguf)
              ? ' Where the merged model reads a text first, columns that matter there keep more precision.'
              : ''}
          </p>
        </>
      )}
    </>
  );
}
