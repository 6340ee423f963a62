import type { StorageMeasured } from '../../in-process/storage-rounds.ts';
import type { Table } from '../../report.ts';

export function leastCpuOf(measured: readonly StorageMeasured[], subject: string, operation: string): number {
  return Math.min(...find(measured, subject, operation).cpuMicroseconds);
}

export function mostPerSecondOf(
  measured: readonly StorageMeasured[],
  subject: string,
  operation: string,
): number {
  return Math.max(...find(measured, subject, operation).perSecond);
}

function find(measured: readonly StorageMeasured[], subject: string, operation: string): StorageMeasured {
  const found = measured.find((entry) => entry.subject === subject && entry.operation === operation);
  if (found === undefined) throw new Error(`${operation} on ${subject} was not measured`);
  return found;
}

export function storageTable(title: string, measured: readonly StorageMeasured[]): Table {
  return {
    title,
    columns: ['operation', 'on', 'CPU µs', 'spread', 'per second'],
    rows: measured.map(({ operation, subject, cpuMicroseconds, perSecond }) => [
      operation,
      subject,
      Math.min(...cpuMicroseconds),
      Math.max(...cpuMicroseconds) / Math.min(...cpuMicroseconds),
      Math.max(...perSecond),
    ]),
  };
}
