import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Contract } from '../../../codegen/contracts.ts';

const toyFolder = join(import.meta.dirname, 'toy');

export const toyContract: Contract = {
  name: 'toys',
  sources: () => ['openapi/common.yaml', 'openapi/toys.yaml'],
  document: 'openapi/openapi.json',
  generated: 'src/generated',
  handlers: 'src/api',
  handlerType: 'src/services.ts',
  errors: 'src/errors.ts',
  info: { title: 'Toys', version: '1.0.0' },
  servers: [{ url: 'https://127.0.0.1:4010' }],
  security: [{ appCredentials: [] }],
  commonErrors: {
    always: [],
    withCredentials: ['missing_or_invalid_service_app_id'],
    withParameters: [],
    withBody: ['invalid_data'],
    ofOauthClients: [],
  },
  emitsCatalogue: true,
};

/** A project with the toy contract, in a temporary folder that is deleted when the variable is disposed. */
export function toyProject(): { root: string; edit: Edit } & Disposable {
  const root = mkdtempSync(join(tmpdir(), 'custos-toys-'));
  cpSync(toyFolder, root, { recursive: true });
  symlinkSync(join(import.meta.dirname, '../../../node_modules'), join(root, 'node_modules'));
  return {
    root,
    edit(file, from, to) {
      const path = join(root, 'openapi', file);
      const text = readFileSync(path, 'utf8');
      if (!text.includes(from)) throw new Error(`${file} does not contain \`${from}\``);
      writeFileSync(
        path,
        text.replace(from, () => to),
      );
    },
    [Symbol.dispose]: () => rmSync(root, { recursive: true }),
  };
}

/** Replaces a text in a document of the project; the text must exist. */
type Edit = (file: 'common.yaml' | 'toys.yaml', from: string, to: string) => void;
