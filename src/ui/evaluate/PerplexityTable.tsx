import type { CSSProperties } from 'react';
import {
  formatBytes,
  formatCount,
  formatCounted,
  formatPercent,
  formatReal,
  formatSeconds,
} from '../../formats/quantity';
import { LinkButton } from '../parts/LinkButton';
import { Swatch } from '../parts/Swatch';
import { Tip } from '../parts/Tip';
import { takeMethod } from '../state/evaluation';
import type { EvaluationRow } from '../state/evaluation-rows';
import {
  type DotScale,
  dotAt,
  dotScale,
  rankRows,
  type TableCell,
  type TableColumn,
  type TableRow,
} from '../state/evaluation-table';
import { useStudio, useStudioState } from '../studio-context';

/**
 * Rows: base, contributors, merges; columns: their means as dots on one scale, with a line at the base, and as numbers, then
 * the texts.
 * Rows are sorted by their mean once nothing moves any more.
 */
export function PerplexityTable({ columns, rows }: { columns: TableColumn[]; rows: TableRow[] }) {
  const busy = useStudioState((s) => s.evaluation.work !== null);
  const ordered = busy ? rows : rankRows(rows);
  const base = rows.find((r) => r.row.id === 'base');
  const several = columns.length > 1;
  const scale = dotScale(rows);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region is reached by keyboard too.
    <section className="scroll-x perplexity-scroll panel" tabIndex={0} aria-label="Table of perplexities">
      <table className="perplexity">
        <caption className="visually-hidden">
          Perplexity of each model and merge on each text; lower is better.
        </caption>
        <thead>
          <tr>
            <th scope="col">
              <span className="faint">lower is better</span>
            </th>
            {scale ? <DotHead scale={scale} several={several} /> : null}
            {several ? (
              <TipHead
                text="geometric mean"
                tip="Geometric mean of the perplexities: e to the mean loss over the texts; each text counts the same."
              />
            ) : null}
            {columns.map((column) => (
              <ColumnHead key={column.id} column={column} />
            ))}
            <TipHead
              text="bits/B"
              tip="Bits per byte of text, the mean over the texts: for models with different tokenizers."
            />
            <TipHead
              text="loss"
              tip="Average loss over the texts, in nats per token: the logarithm of the perplexity."
            />
            <th scope="col">size</th>
            <th scope="col">time</th>
          </tr>
        </thead>
        {(['models', 'merges'] as const).map((group) => {
          const members = ordered.filter((r) => r.row.group === group);
          if (members.length === 0) return null;
          return (
            <tbody key={group}>
              <tr className="perplexity-group">
                <th scope="rowgroup" colSpan={columns.length + 5 + Number(several) + Number(scale !== null)}>
                  {group === 'models' ? 'Models' : 'Merges, made in memory to be measured'}
                </th>
              </tr>
              {members.map((row) => (
                <Row
                  key={row.row.id}
                  row={row}
                  columns={columns}
                  base={base}
                  several={several}
                  scale={scale}
                />
              ))}
            </tbody>
          );
        })}
      </table>
    </section>
  );
}

function TipHead({ text, tip }: { text: string; tip: string }) {
  return (
    <th scope="col">
      <Tip text={tip}>
        <span>{text}</span>
      </Tip>
    </th>
  );
}

/** The ends of the scale of the dots. */
function DotHead({ scale: { least, most }, several }: { scale: DotScale; several: boolean }) {
  return (
    <th scope="col" className="dot-head">
      <span className="visually-hidden">{several ? 'mean perplexity' : 'perplexity'}, drawn</span>
      <span className="dot-ends" aria-hidden="true">
        <span>{formatReal(least)}</span>
        <span>{formatReal(most)}</span>
      </span>
    </th>
  );
}

function ColumnHead({ column }: { column: TableColumn }) {
  const cut = column.scored < column.characters;
  return (
    <th scope="col">
      <span className="truncate perplexity-text" title={column.name}>
        {column.name}
      </span>
      <small
        className="faint"
        title={`${formatCount(column.scored)} of ${formatCount(column.characters)} characters`}
      >
        {cut ? 'first' : 'all'} {formatCount(column.scored)}{' '}
        {cut ? <span className="visually-hidden">of {formatCount(column.characters)} </span> : null}
        characters
      </small>
    </th>
  );
}

interface RowProps {
  row: TableRow;
  columns: TableColumn[];
  base: TableRow | undefined;
  several: boolean;
  scale: DotScale | null;
}

function Value({ perplexity, best }: { perplexity: number; best: boolean }) {
  return (
    <span className="perplexity-value" data-best={best || undefined}>
      {perplexity.toFixed(3)}
      {best ? <span className="tag best-tag">best</span> : null}
    </span>
  );
}

function Row({ row: shown, columns, base, several, scale }: RowProps) {
  const { row, cells, mean, bitsPerByte, seconds, bytes, staleTitle, earlier } = shown;
  return (
    <tr data-current={row.current || undefined} data-stale={staleTitle !== null || undefined}>
      <th scope="row">
        <span className="row tight">
          <RowHead row={row} />
          {earlier === null ? null : (
            <small className="faint" title={`Measured on ${new Date(earlier).toLocaleString()}.`}>
              from an earlier visit
            </small>
          )}
        </span>
        {staleTitle !== null ? <small className="faint">before your change: {staleTitle}</small> : null}
      </th>
      {scale ? (
        <td className="dot-cell" aria-hidden="true">
          <Dot row={shown} base={base} scale={scale} />
        </td>
      ) : null}
      {several ? <td>{mean ? <Value {...mean} /> : <span className="faint">–</span>}</td> : null}
      {columns.map((column, i) => {
        const cell = cells[i];
        return (
          <td key={column.id}>
            {cell ? <Cell cell={cell} base={row.id === 'base' ? undefined : base?.cells[i]} /> : null}
          </td>
        );
      })}
      {[
        ['bits', bitsPerByte?.toFixed(3)],
        ['loss', mean && Math.log(mean.perplexity).toFixed(4)],
        ['size', bytes === null ? null : formatBytes(bytes)],
        ['time', seconds === null ? null : formatSeconds(seconds)],
      ].map(([name, text]) => (
        <td key={name} className="perplexity-time">
          {text ?? <span className="faint">–</span>}
        </td>
      ))}
    </tr>
  );
}

/** The mean of a row on the scale of all, and a piece of the line at the base. */
function Dot({ row, base, scale }: { row: TableRow; base: TableRow | undefined; scale: DotScale }) {
  return (
    <span className="dot-track">
      {[base, row].map((of, i) => {
        const at = of?.mean && dotAt(scale, of.mean.perplexity);
        return of?.mean ? (
          <span
            key={i === 0 ? 'base' : 'own'}
            className={i === 0 ? 'dot-base' : 'dot'}
            data-best={(i > 0 && of.mean.best) || undefined}
            data-group={i > 0 ? of.row.group : undefined}
            data-beyond={at === null || undefined}
            style={{ '--at': at ?? 1 } as CSSProperties}
          />
        ) : null;
      })}
    </span>
  );
}

/** Models by name and color; a method can be taken into the recipe. */
function RowHead({ row }: { row: EvaluationRow }) {
  const studio = useStudio();
  if (row.group === 'merges' && !row.current) {
    return (
      <Tip text={`Apply ${row.title} to the recipe`}>
        <LinkButton className="perplexity-take" onClick={() => takeMethod(studio, row)}>
          <span className="visually-hidden">Apply: </span>
          {row.label}
        </LinkButton>
      </Tip>
    );
  }
  return (
    <span className="perplexity-name" title={row.title}>
      <span className="row tight">
        {row.color === null ? null : <Swatch color={row.color} />}
        <span className="truncate">{row.label}</span>
      </span>
      {row.current ? <span className="tag">this recipe</span> : null}
    </span>
  );
}

function Cell({ cell, base }: { cell: TableCell; base: TableCell | undefined }) {
  switch (cell.state) {
    case 'none':
      return <span className="faint">–</span>;
    case 'queued':
      return <span className="faint">queued</span>;
    case 'running':
      return <Running />;
    case 'failed':
      return (
        <span className="tone-bad" title={`${cell.error.message} ${cell.error.hint}`}>
          failed
        </span>
      );
    case 'done': {
      const { perplexity, meanNll, bitsPerByte, tokens, protocol, leftOut } = cell.report;
      const than =
        base?.state === 'done' && base.report.tokens === tokens
          ? perplexity / base.report.perplexity - 1
          : null;
      const bits = bitsPerByte === null ? '' : `, ${bitsPerByte.toFixed(4)} bits per byte`;
      return (
        <span
          className="perplexity-cell"
          title={`mean loss ${meanNll.toFixed(4)} nats over ${formatCount(tokens)} ${protocol.masked ? 'masked tokens' : 'tokens'}${bits}`}
        >
          <Value perplexity={perplexity} best={cell.best} />
          {than === null ? null : (
            <small className="perplexity-than">
              {changeWords(than)}
              <span className="visually-hidden"> against the base</span>
            </small>
          )}
          {leftOut ? (
            <small
              className="faint"
              title="The chat template of this model refuses them: they are not measured."
            >
              without {formatCounted(leftOut, 'conversation')}
            </small>
          ) : null}
        </span>
      );
    }
  }
}

/** `−18.7 %`, `+3.4 %`; what is at least doubled as a factor, `×2.40`. */
function changeWords(change: number): string {
  if (change >= 1) return `×${formatReal(1 + change)}`;
  return `${change > 0 ? '+' : ''}${formatPercent(change)}`;
}

/** How far all that are measured together are. */
function Running() {
  const share = useStudioState(({ job }) => {
    const counted = job?.progress?.counted;
    return counted && counted.total > 0 ? counted.done / counted.total : 0;
  });
  return <span className="perplexity-value faint">{formatPercent(share)}</span>;
}
