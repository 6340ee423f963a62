import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundleInspector } from '../../../codegen/inspector.ts';

/** Builds the inspector from its sources into a separate folder, which is deleted at the end. */
export async function builtInspector(): Promise<{ readonly folder: string } & Disposable> {
  const folder = mkdtempSync(join(tmpdir(), 'custos-inspector-'));
  const { files } = await bundleInspector();
  for (const { path, contents } of files) writeFileSync(join(folder, path), contents);
  return { folder, [Symbol.dispose]: () => rmSync(folder, { recursive: true }) };
}
