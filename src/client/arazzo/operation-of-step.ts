import { ConfigError } from '../../config.ts';
import { parsePath } from '../../sandbox/payload-path.ts';
import { listOperations } from '../calls/find-operation.ts';
import type { ArazzoDocument, Step } from './document.ts';

/**
 * The id of the operation that a step calls: `createWallet`, `$sourceDescriptions.api.createWallet`, or a pointer to it
 * such as `{$sourceDescriptions.api.url}#/paths/~1v1~1wallets/post`.
 *
 * @throws ConfigError for a source description or a path that is not there.
 */
export function operationIdOf(
  { operationId, operationPath = '' }: Step,
  { sourceDescriptions }: Pick<ArazzoDocument, 'sourceDescriptions'>,
): string {
  const [, source, id] = /^\$sourceDescriptions\.([^.]+)\.(.+)$/s.exec(operationId ?? '') ?? [];
  if (operationId !== undefined && source === undefined) return operationId;
  const [, sourceOfPath, pointer] =
    /^\{?\$sourceDescriptions\.([^.]+)\.url\}?#(\/.+)$/s.exec(operationPath) ?? [];
  const name = source ?? sourceOfPath;
  if (name === undefined) {
    throw invalid(
      `expected an \`operationPath\` such as {$sourceDescriptions.api.url}#/paths/~1v1~1wallets/post, got \`${operationPath}\``,
    );
  }
  if (!sourceDescriptions.some((each) => each.name === name))
    throw invalid(`no source description is called \`${name}\``);
  if (id !== undefined) return id;
  const [, path, method = ''] = parsePath(pointer!);
  const found = listOperations().find(
    (each) => each.path === path && each.method.toLowerCase() === method.toLowerCase(),
  );
  if (found === undefined)
    throw invalid(`no operation has the path \`${path}\` and the method \`${method}\``);
  return found.id;
}

function invalid(fault: string): ConfigError {
  return new ConfigError('invalid step:', [fault]);
}
