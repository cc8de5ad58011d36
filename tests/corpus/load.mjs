// Print what the Gemini CLI's own reader makes of session files: one JSON object a line.
// usage: node load.mjs CORE FILE...   CORE is the folder that holds node_modules/@google/gemini-cli-core.
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [dir, ...files] = process.argv.slice(2);
const core = path.resolve(dir, 'node_modules', '@google', 'gemini-cli-core');
const { main } = JSON.parse(fs.readFileSync(path.join(core, 'package.json'), 'utf8'));
const { loadConversationRecord } = await import(pathToFileURL(path.join(core, main)).href);
const lines = [];
for (const file of files) {
  lines.push(JSON.stringify({ file, record: await loadConversationRecord(path.resolve(file)) }) + '\n');
}
process.stdout.write(lines.join(''), () => process.exit(0)); // not before all is written
