import { AmalgamError } from '../../errors';
import type { Kernel } from '../kernel';
import { wgslOf } from './wgsl';

interface Compiled {
  pipeline: GPUComputePipeline;
  layout: GPUBindGroupLayout;
}

/** Compiled kernels by id. Compilation errors surface at the next read, with the compiler's lines. */
export class Pipelines {
  private readonly compiled = new Map<string, Compiled>();
  private problems: Promise<AmalgamError | null>[] = [];

  constructor(
    private readonly device: GPUDevice,
    private readonly adapter: string,
  ) {}

  get(kernel: Kernel): Compiled {
    let compiled = this.compiled.get(kernel.id);
    if (!compiled) {
      compiled = this.compile(kernel);
      this.compiled.set(kernel.id, compiled);
    }
    return compiled;
  }

  /** Outcomes of the compilations since the last call. */
  takeProblems(): Promise<AmalgamError | null>[] {
    const problems = this.problems;
    this.problems = [];
    return problems;
  }

  private sourceOf(kernel: Kernel): string {
    return wgslOf(kernel, this.device.features.has('subgroups'));
  }

  private compile(kernel: Kernel): Compiled {
    const { device } = this;
    if (kernel.wgsl === '') throw new Error(`${kernel.id} has no GPU version`);
    device.pushErrorScope('validation');
    const module = device.createShaderModule({ label: kernel.id, code: this.sourceOf(kernel) });
    const layout = device.createBindGroupLayout({
      label: kernel.id,
      entries: [
        {
          binding: 0,
          visibility: GPUShaderStage.COMPUTE,
          buffer: { type: 'uniform', hasDynamicOffset: true, minBindingSize: paramsSize(kernel) },
        },
        ...Object.values(kernel.buffers).map((type, i) => ({
          binding: i + 1,
          visibility: GPUShaderStage.COMPUTE,
          buffer: { type: type.startsWith('rw ') ? 'storage' : 'read-only-storage' } as const,
        })),
        { binding: 9, visibility: GPUShaderStage.COMPUTE, buffer: { type: 'storage' } },
      ],
    });
    const pipeline = device.createComputePipeline({
      label: kernel.id,
      layout: device.createPipelineLayout({ bindGroupLayouts: [layout] }),
      compute: { module, entryPoint: 'main' },
    });
    this.problems.push(this.check(kernel, module, device.popErrorScope()));
    return { pipeline, layout };
  }

  private async check(
    kernel: Kernel,
    module: GPUShaderModule,
    scope: Promise<GPUError | null>,
  ): Promise<AmalgamError | null> {
    const error = await scope;
    if (!error) return null;
    this.compiled.delete(kernel.id);
    const { messages } = await module.getCompilationInfo();
    const source = this.sourceOf(kernel).split('\n');
    const lines = messages
      .filter((m) => m.type === 'error')
      .map((m) => `${m.lineNum}:${m.linePos} ${m.message}\n    ${source[m.lineNum - 1] ?? ''}`);
    return new AmalgamError(
      'GpuCompile',
      `The kernel ${kernel.id} does not compile on ${this.adapter}: ${lines.join('\n') || error.message}`,
      'Nothing was written. Choose the CPU engine, and please report this with the adapter name.',
    );
  }
}

function paramsSize(kernel: Kernel): number {
  return Math.ceil((4 + Object.keys(kernel.params).length) / 4) * 16;
}
