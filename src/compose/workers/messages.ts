import type { MetricValues } from '../../metrics/merge.ts';

/** What the parent process says to a worker of `custos serve --workers`. */
export type ToWorker =
  /** Stop like a server that receives SIGTERM. */
  | { readonly kind: 'stop' }
  /** Leave the port to the other workers, then stop. */
  | { readonly kind: 'leave' }
  /** Send your metrics. */
  | { readonly kind: 'metrics'; readonly id: number }
  /** The metrics of all workers, as text. */
  | { readonly kind: 'merged'; readonly id: number; readonly text: string };

/** What a worker says to its parent process. */
export type FromWorker =
  | { readonly kind: 'ready'; readonly url: string; readonly admin: string | undefined }
  | { readonly kind: 'metrics'; readonly id: number; readonly values: MetricValues }
  /** Collect the metrics of all workers. */
  | { readonly kind: 'merge'; readonly id: number };
