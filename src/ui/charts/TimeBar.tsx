import { formatPercent, formatSeconds } from '../../formats/quantity';
import { type TimesSpent, timeShares } from './time-shares';

/** All of the time of a run as one stacked bar with its numbers below. */
export function TimeBar(times: TimesSpent) {
  const shares = timeShares(times);
  return (
    <div className="stages">
      <div className="stage-bar" aria-hidden="true">
        {shares.map(({ stage, share }) => (
          <span
            key={stage}
            className="stage-part"
            style={{ width: `${share * 100}%`, background: `var(--stage-${stage})` }}
          />
        ))}
      </div>
      <dl className="stage-key">
        {shares.map(({ stage, seconds, share }) => (
          <div key={stage}>
            <dt>
              <span className="swatch" style={{ background: `var(--stage-${stage})` }} aria-hidden="true" />
              {stage}
            </dt>
            <dd>
              {formatSeconds(seconds)} <span className="faint">{formatPercent(share)}</span>
            </dd>
          </div>
        ))}
      </dl>
    </div>
  );
}
