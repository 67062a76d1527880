import { useMemo } from 'react';
import { formatBytes } from '../../formats/quantity';
import { Button } from '../parts/Button';
import { ErrorCard } from '../parts/ErrorCard';
import { CheckIcon, CloseIcon } from '../parts/icons';
import { addText, chooseText, openSampleTexts, removeText } from '../state/evaluation';
import type { EvaluationText } from '../state/evaluation-state';
import { isOfSample } from '../state/sample-texts';
import { useStudio, useStudioState } from '../studio-context';
import { AddText } from './AddText';

/** Which texts are columns: the sample's as toggles, pasted ones, files, datasets of the Hub. */
export function TextChoice() {
  const studio = useStudio();
  const texts = useStudioState((s) => s.evaluation.texts);
  const opening = useStudioState((s) => s.evaluation.opening);
  const error = useStudioState((s) => s.evaluation.openError);
  const busy = useStudioState((s) => s.evaluation.work !== null);
  const own = useStudioState((s) => !isOfSample(s));
  return (
    <div className="stack">
      <fieldset className="text-choice">
        <legend className="visually-hidden">Texts to measure on</legend>
        {texts.map((text) => (
          <TextToggle key={text.id} text={text} busy={busy} />
        ))}
        {opening === 'opening' ? <span className="small quiet">Opening the sample texts…</span> : null}
        <AddText take={async (name, text) => void (await addText(studio, name, text))} multiple />
      </fieldset>
      {own && texts.every((t) => t.origin === 'sample' && !t.chosen) ? (
        <p className="small quiet">
          Add a text of the kind that your merge is for. The texts above were made for the sample models.
        </p>
      ) : null}
      {error ? (
        <div className="stack">
          <ErrorCard error={error} />
          <div>
            <Button onClick={() => void openSampleTexts(studio)}>Open the sample texts again</Button>
          </div>
        </div>
      ) : null}
    </div>
  );
}

function TextToggle({ text, busy }: { text: EvaluationText; busy: boolean }) {
  const studio = useStudio();
  const bytes = useMemo(() => new TextEncoder().encode(text.text).length, [text.text]);
  return (
    <span className="text-toggle" data-on={text.chosen || undefined}>
      <button
        type="button"
        aria-pressed={text.chosen}
        title={formatBytes(bytes)}
        onClick={() => chooseText(studio, text.id, !text.chosen)}
      >
        <span className="text-check">{text.chosen ? <CheckIcon /> : null}</span>
        <span className="truncate">{text.name}</span>
      </button>
      {text.origin === 'own' ? (
        <Button
          variant="quiet"
          iconOnly
          why={busy ? 'Measuring.' : null}
          aria-label={`Remove ${text.name}`}
          onClick={() => removeText(studio, text.id)}
        >
          <CloseIcon />
        </Button>
      ) : null}
    </span>
  );
}
