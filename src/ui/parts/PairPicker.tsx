import { useMemo } from 'react';
import { Button } from './Button';
import { SwapIcon } from './icons';
import { ModelSelect } from './ModelSelect';
import { useStudio, useStudioState } from '../studio-context';
import { editComparison, swapPair } from '../compare/comparing';
import { pairOf } from '../state/pair';

/** The pair as chosen, or as the recipe suggests it. */
export function usePair() {
  const models = useStudioState((s) => s.models);
  const recipe = useStudioState((s) => s.recipe);
  const comparison = useStudioState((s) => s.comparison);
  return useMemo(() => pairOf({ models, recipe, comparison }), [models, recipe, comparison]);
}

/** Base and fine-tune, side by side, and a button that turns them round. */
export function PairPicker() {
  const studio = useStudio();
  const { base, finetuned } = usePair();
  return (
    <div className="pair">
      <div className="pair-side">
        <span className="pair-label" aria-hidden="true">
          Base
        </span>
        <ModelSelect label="Base" value={base} onChange={(ref) => editComparison(studio, { base: ref })} />
      </div>
      <Button
        variant="quiet"
        iconOnly
        className="pair-swap"
        aria-label="Swap the two models"
        tip="Swap"
        why={base === null || finetuned === null ? 'Choose two models first.' : null}
        onClick={() => swapPair(studio)}
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
          onChange={(ref) => editComparison(studio, { finetuned: ref })}
        />
      </div>
    </div>
  );
}
