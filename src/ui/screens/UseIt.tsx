import { CopyButton } from '../parts/CopyButton';
import { Section } from '../parts/Section';
import { useFacts } from '../studio-context';

/** How the finished output is run elsewhere, each with its real names. */
export function UseIt() {
  const use = useFacts((s) => (s.run?.status === 'done' ? s.run.report?.use : undefined));
  if (!use || use.length === 0) return null;
  return (
    <Section title="Use it" aside={<span className="small quiet">run beside the downloaded files</span>}>
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
