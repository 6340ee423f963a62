import { exampleOf } from './answer-request.ts';
import { faultText } from './fault-text.ts';
import type { OpenedDocument } from './open-document.ts';
import { isJson } from './read-operations.ts';

const MAX_LISTED = 20;

/** The response examples that do not fit their schemas, each with its place. */
export function invalidExamples(opened: OpenedDocument): string[] {
  const found = new Set<string>();
  for (const { responses } of opened.operations) {
    for (const media of [...responses.values()].flat()) {
      const validate = opened.bodies.get(`${media.pointer}/schema`);
      if (validate === undefined || !isJson(media.node.type)) continue;
      const names = Object.keys(media.node.examples ?? {});
      for (const name of names.length === 0 ? [undefined] : names) {
        if (name === undefined && media.node.example === undefined) continue;
        if (validate(exampleOf(opened, media, name))) continue;
        const place = name === undefined ? 'example' : `examples/${name}`;
        found.add(`#${media.pointer}/${place}: ${faultText(validate.errors)}`);
      }
    }
  }
  return [...found].slice(0, MAX_LISTED);
}
