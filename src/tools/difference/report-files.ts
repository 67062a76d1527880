import type { Comparison } from './compare-models';
import { comparisonReportHtml } from './report-html';
import {
  architectureComparisonJson,
  configComparisonJson,
  loraAnalysisJson,
  weightDifferencesJson,
} from './report-json';
import { differenceText } from './report-text';

/** The files of a comparison, in the order they are written; each is made when it is asked for. */
export function reportFiles({ report, rowNorms }: Comparison): { path: string; text(): string }[] {
  return [
    { path: 'difference.txt', text: () => differenceText(report) },
    { path: 'weight_differences.json', text: () => weightDifferencesJson(report, rowNorms) },
    { path: 'config_comparison.json', text: () => configComparisonJson(report) },
    { path: 'architecture_comparison.json', text: () => architectureComparisonJson(report) },
    { path: 'lora_analysis.json', text: () => loraAnalysisJson(report) },
    { path: 'comparison_report.html', text: () => comparisonReportHtml(report) },
  ];
}
