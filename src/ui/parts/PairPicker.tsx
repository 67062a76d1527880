import { useMemo } from 'react';
import { pairOf } from '../state/model-choices';
import { chooseToolModels } from '../state/tool-jobs';
import { useStudio, useStudioState } from '../studio-context';
import { Button } from './Button';
import { SwapIcon } from './icons';
import { ModelSelect } from './ModelSelect';

/** The pair as chosen, or as the recipe suggests it. */
export function usePair() {
  const models = useStudioState((s) => s.models);
  const recipe = useStudioState((s) => s.recipe);
  const tools = useStudioState((s) => s.tools);
  return useMemo(() => pairOf({ models, recipe, tools }), [models, recipe, tools]);
}

/** Base and fine-tune, side by side, and a button that swaps them. */
export function PairPicker() {
  const studio = useStudio();
  const { base, finetuned } = usePair();
  return (
    <div className="pair">
      <div className="pair-side">
        <span className="pair-label" aria-hidden="true">
          Base
        </span>
        <ModelSelect label="Base" value={base} onChange={(ref) => chooseToolModels(studio, { base: ref })} />
      </div>
      <Button
        variant="quiet"
        iconOnly
        aria-label="Swap the two models"
        tip="Swap"
        why={base === null || finetuned === null ? 'Choose two models first.' : null}
        onClick={() => chooseToolModels(studio, { base: finetuned, finetuned: base })}
      >
        <SwapIcon />
      </Button>
      <div className="pair-side">
        <span className="pair-label" aria-hidden="true">
          Fine-tuned model
        </span>
        <ModelSelect
          label="Fine-tuned model"
          value={finetuned}
          onChange={(ref) => chooseToolModels(studio, { finetuned: ref })}
        />
      </div>
    </div>
  );
}
