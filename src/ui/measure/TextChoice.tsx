import { useMemo } from 'react';
import { formatBytes } from '../../formats/quantity';
import { Button } from '../parts/Button';
import { Chip } from '../parts/Chip';
import { ErrorCard } from '../parts/ErrorCard';
import { CheckIcon, PlusIcon } from '../parts/icons';
import { PopoverFrame } from '../parts/PopoverFrame';
import type { MeasureText } from '../state/measure-state';
import { addText, chooseText, openSampleTexts, removeText } from '../state/measure-texts';
import { isOfSample } from '../state/sample-texts';
import { useStudio, useStudioState } from '../studio-context';
import { AddText } from './AddText';

/** Which texts are measured on: the sample's for the sample, pasted ones, files, datasets of the Hub. */
export function TextChoice() {
  const studio = useStudio();
  const all = useStudioState((s) => s.measure.texts);
  const opening = useStudioState((s) => s.measure.opening);
  const error = useStudioState((s) => s.measure.openError);
  const busy = useStudioState((s) => s.measure.running.size > 0);
  const isSample = useStudioState(isOfSample);
  const texts = isSample ? all : all.filter(({ origin }) => origin === 'own');
  return (
    <>
      <fieldset className="row wrap tight chips">
        <legend className="visually-hidden">Texts to measure on</legend>
        {texts.map((text) => (
          <TextChip key={text.id} text={text} busy={busy} />
        ))}
        {opening === 'opening' ? <span className="small quiet">Opening the sample texts…</span> : null}
        <PopoverFrame
          label="Add a text"
          className="add-text"
          trigger={
            <Button icon={PlusIcon} variant="quiet">
              text
            </Button>
          }
        >
          <div className="row wrap">
            <AddText take={async (name, text) => void (await addText(studio, name, text))} multiple />
          </div>
        </PopoverFrame>
      </fieldset>
      {error ? (
        <div className="stack">
          <ErrorCard error={error} />
          <div>
            <Button onClick={() => void openSampleTexts(studio)}>Open the sample texts again</Button>
          </div>
        </div>
      ) : null}
    </>
  );
}

function TextChip({ text: { id, name, text, chosen, origin }, busy }: { text: MeasureText; busy: boolean }) {
  const studio = useStudio();
  const bytes = useMemo(() => new TextEncoder().encode(text).length, [text]);
  return (
    <Chip
      name={name}
      on={chosen}
      title={formatBytes(bytes)}
      onToggle={() => chooseText(studio, id, !chosen)}
      why={busy ? 'Measuring.' : null}
      onRemove={origin === 'own' ? () => removeText(studio, id) : undefined}
    >
      {chosen ? <CheckIcon /> : null}
      <span className="truncate">{name}</span>
    </Chip>
  );
}
