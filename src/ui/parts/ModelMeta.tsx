import type { ReactNode } from 'react';
import { formatBytes, formatCounted, formatParameters } from '../../formats/quantity';
import type { ModelInfo } from '../../reports/models';

interface ModelMetaProps {
  model: ModelInfo;
  /** Only what fits on one line of a card. */
  short?: boolean;
  children?: ReactNode;
}

/** Summary of a model in one line: `llama · 1.24 M params · BF16 · 2.48 MB · 6 layers`. */
export function ModelMeta({ model, short, children }: ModelMetaProps) {
  if (short && model.adapter) {
    return (
      <div className="row wrap small quiet close">
        <span>{model.adapter.summary}</span>
        <span>{formatBytes(model.bytes)}</span>
        {children}
      </div>
    );
  }
  return (
    <div className="row wrap small quiet close">
      {model.adapter ? <span>{model.adapter.summary}</span> : null}
      {model.family && !model.adapter && !short ? <span>{model.family}</span> : null}
      <span>{formatParameters(model.parameters)} params</span>
      <span>{Object.keys(model.dtypes).join(' + ')}</span>
      <span>{formatBytes(model.bytes)}</span>
      {model.layers !== undefined && !model.adapter && !short ? (
        <span>{formatCounted(model.layers, 'layer')}</span>
      ) : null}
      {model.license ? <span>{model.license}</span> : null}
      {model.commit ? <code title={model.commit}>{model.commit.slice(0, 7)}</code> : null}
      {children}
    </div>
  );
}
