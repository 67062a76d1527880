import { CopyButton } from '../parts/CopyButton';
import { Section } from '../parts/Section';
import { currentRun } from '../state/runs';
import { useStudioState } from '../studio-context';

/** How the finished output is run elsewhere, each with its real names. */
export function UseIt() {
  const run = useStudioState((s) => (currentRun(s)?.status === 'done' ? currentRun(s) : null));
  const use = run?.report?.use;
  if (!run || !use || use.length === 0) return null;
  const { kind, name } = run.destination;
  return (
    <Section title="Use it">
      <p className="small quiet">
        Run beside the folder <span className="mono">{name}</span>
        {kind === 'folder' ? '' : ', unpacked from the .zip'}
        {run.outputFiles.some((file) => file.endsWith('.gguf'))
          ? '; inside it, what names the GGUF file.'
          : '.'}
      </p>
      {use.map(({ title, code }) => (
        <div key={title} className="use-snippet">
          <div className="row">
            <h3>{title}</h3>
            <CopyButton text={() => code} />
          </div>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region is reached by keyboard too. */}
          <section className="yaml" tabIndex={0} aria-label={`${title}: what to type`}>
            <pre>{code}</pre>
          </section>
        </div>
      ))}
    </Section>
  );
}
